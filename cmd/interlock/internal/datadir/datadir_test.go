package datadir

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/journal"
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

// Advice for a damaged journal can be followed: journal verify reads directories alone.
func TestAdviceForDamage(t *testing.T) {
	for place, verify := range map[string]bool{
		"data": true, "/var/lib/a b": true, "s3://bucket/main": false, "postgres://db/interlock": false,
	} {
		text := OpenError(place, &journal.DamageError{File: "log"}).Error()
		if strings.Contains(text, "journal verify") != verify || !strings.Contains(text, "--restore") {
			t.Errorf("%s: %s", place, text)
		}
	}
}
