package mcp

import (
	"errors"

	"golang.org/x/sys/unix"
)

// awaitEnd waits for the end of a process, which is there. It returns false if that cannot be seen, before Linux 5.3.
func awaitEnd(pid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return errors.Is(err, unix.ESRCH)
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}
