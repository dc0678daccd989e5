package main

import (
	"io/fs"
	"syscall"
	"testing"
)

// A disk that fails, or is full, when the journal is opened is distinguished from other reasons not
// to start.
func TestDiskFailsAtStart(t *testing.T) {
	for _, tt := range []struct {
		errno syscall.Errno
		code  int
	}{
		{syscall.EIO, exitDisk},
		{syscall.ENOSPC, exitDisk},
		{syscall.EDQUOT, exitDisk},
		{syscall.EROFS, exitDisk},
		{syscall.EACCES, exitFailure},
		{syscall.EMFILE, exitFailure},
		{syscall.ENFILE, exitFailure},
	} {
		if got := exitCode(openFailed("data", &fs.PathError{Op: "open", Path: "data", Err: tt.errno})); got != tt.code {
			t.Errorf("%v: exit code %d, want %d", tt.errno, got, tt.code)
		}
	}
}
