package cli

import (
	"strconv"
	"syscall"
)

// SignalName is SIGTERM rather than "terminated". These are the signals that Go has here.
func SignalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGKILL:
		return "SIGKILL"
	case syscall.SIGTERM:
		return "SIGTERM"
	}
	return "signal " + strconv.Itoa(int(s))
}
