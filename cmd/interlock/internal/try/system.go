package try

import "errors"

// refuse refuses a system on which no server can own a journal directory, and no process can be frozen.
func refuse(system string) error {
	if system == "windows" {
		return errors.New(
			"this command needs a system that can own a journal directory and freeze a process: use Linux or macOS",
		)
	}
	return nil
}
