package mcp

import "golang.org/x/sys/windows"

// awaitEnd waits for the end of a process. It returns false if that cannot be seen.
func awaitEnd(pid int) bool {
	process, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return false
	}
	defer func() { _ = windows.CloseHandle(process) }()
	event, err := windows.WaitForSingleObject(process, windows.INFINITE)
	return err == nil && event == windows.WAIT_OBJECT_0
}
