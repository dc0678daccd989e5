package try

import "errors"

// refuse refuses a system on which no server can own a journal directory, and no process can be frozen.
func refuse(system string) error {
	if system == "windows" {
		return errors.New(
			"a Windows machine can neither own a journal directory nor freeze a process, as this command does: use Linux "+
				"or macOS",
		)
	}
	return nil
}
