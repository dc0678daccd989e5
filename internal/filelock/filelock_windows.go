package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Try takes the exclusive lock of f, and reports whether another open file has it.
func Try(f *os.File) (held bool, err error) {
	err = lock(f, windows.LOCKFILE_FAIL_IMMEDIATELY)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return true, nil
	}
	return false, err
}

// Wait takes the exclusive lock of f when no other open file has it, however long that takes.
func Wait(f *os.File) error { return lock(f, 0) }

// lock locks one byte far behind the end, so that the file stays readable.
func lock(f *os.File, flags uint32) error {
	return windows.LockFileEx(
		windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30},
	)
}
