//go:build unix

package filelock

import (
	"os"

	"golang.org/x/sys/unix"
)

// Try takes the exclusive lock of f, and reports whether another open file has it.
func Try(f *os.File) (held bool, err error) {
	err = flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return true, nil
	}
	return false, err
}

// Wait takes the exclusive lock of f when no other open file has it, however long that takes.
func Wait(f *os.File) error { return flock(f, unix.LOCK_EX) }

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}
