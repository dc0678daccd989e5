//go:build unix

package credential

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner sets the owner and the group of a file to those of another, so that a server that could
// read the one can read the other.
func keepOwner(f *os.File, of fs.FileInfo) error {
	had, ok := of.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if now, ok := info.Sys().(*syscall.Stat_t); ok && now.Uid == had.Uid && now.Gid == had.Gid {
		return nil
	}
	return f.Chown(int(had.Uid), int(had.Gid))
}
