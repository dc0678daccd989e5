//go:build unix && !linux

package filejournal

import (
	"os"

	"golang.org/x/sys/unix"
)

// networkFileSystem cannot tell on this system; docs/journal.md warns.
func networkFileSystem(*os.File) string { return "" }

// allocate only sets the size; the zeros that are written next take the blocks.
func allocate(fd int, size int64) error { return unix.Ftruncate(fd, size) }

func syncData(fd int) error { return unix.Fsync(fd) }
