//go:build !linux

package filejournal

import (
	"os"
	"sync"
	"syscall"
)

// networkFileSystem cannot tell on this system; docs/journal.md warns.
func networkFileSystem(*os.File) string { return "" }

// allocate only sets the size; the zeros that are written next take the blocks.
func allocate(f *os.File, _ int, size int64) error { return f.Truncate(size) }

var zeros = sync.OnceValue(func() []byte { return make([]byte, zeroStep) })

// zeroDirectly cannot write past the page cache on this system.
func (*diskFile) zeroDirectly(off, end int64) error { return syscall.EINVAL }

// syncData leaves to the library what a real sync is: on macOS it is not fsync.
func syncData(f *os.File, _ int) error { return f.Sync() }
