package datadir

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// A disk that fails, or is full, when the journal is opened is distinguished from other reasons not
// to start.
func TestDiskFailsAtStart(t *testing.T) {
	for _, tt := range []struct {
		errno syscall.Errno
		code  int
	}{
		{syscall.EIO, cli.ExitDisk},
		{syscall.ENOSPC, cli.ExitDisk},
		{syscall.EDQUOT, cli.ExitDisk},
		{syscall.EROFS, cli.ExitDisk},
		{syscall.EACCES, cli.ExitFailure},
		{syscall.EMFILE, cli.ExitFailure},
		{syscall.ENFILE, cli.ExitFailure},
	} {
		if got := cli.ExitCode(OpenError("data", &fs.PathError{Op: "open", Path: "data", Err: tt.errno})); got != tt.code {
			t.Errorf("%v: exit code %d, want %d", tt.errno, got, tt.code)
		}
	}
}
