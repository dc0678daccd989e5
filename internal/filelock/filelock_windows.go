package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Try takes the exclusive lock of f, and reports whether another open file has a lock.
func Try(f *os.File) (held bool, err error) { return try(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// TryShared takes the shared lock of f, which many open files may have at a time, and reports whether another open file
// has the exclusive one.
func TryShared(f *os.File) (held bool, err error) { return try(f, 0) }

// Wait takes the exclusive lock of f when no other open file has it, however long that takes.
func Wait(f *os.File) error { return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

func try(f *os.File, how uint32) (held bool, err error) {
	err = lock(f, how|windows.LOCKFILE_FAIL_IMMEDIATELY)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return true, nil
	}
	return false, err
}

// lock locks one byte far behind the end, so that the file stays readable.
func lock(f *os.File, flags uint32) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
}
