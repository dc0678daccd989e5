//go:build unix

package cli

import (
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// SignalName is SIGTERM rather than "terminated".
func SignalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return "signal " + strconv.Itoa(int(s))
}
