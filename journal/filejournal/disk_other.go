//go:build unix && !linux

package filejournal

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// networkFileSystem cannot tell on this system; docs/journal.md warns.
func networkFileSystem(*os.File) string { return "" }

// allocate only sets the size; the zeros that are written next take the blocks.
func allocate(fd int, size int64) error { return unix.Ftruncate(fd, size) }

var zeros = sync.OnceValue(func() []byte { return make([]byte, zeroStep) })

// zeroDirectly cannot write past the page cache on this system.
func (*diskFile) zeroDirectly(off, end int64) error { return unix.EINVAL }

// syncData leaves to the library what a real sync is: on macOS it is not fsync.
func syncData(f *os.File, _ int) error { return f.Sync() }
