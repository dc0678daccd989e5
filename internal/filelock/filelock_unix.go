//go:build unix

package filelock

import (
	"os"

	"golang.org/x/sys/unix"
)

// Try takes the exclusive lock of f, and reports whether another open file has a lock.
func Try(f *os.File) (held bool, err error) { return try(f, unix.LOCK_EX) }

// TryShared takes the shared lock of f, which many open files may have at a time, and reports whether another open file
// has the exclusive one.
func TryShared(f *os.File) (held bool, err error) { return try(f, unix.LOCK_SH) }

func try(f *os.File, how int) (held bool, err error) {
	err = flock(f, how|unix.LOCK_NB)
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
