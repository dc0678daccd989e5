//go:build unix

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// DiskFree returns how many bytes of the disk of a folder this user may still write, and how many that would be if the
// disk were empty. As in df, what is reserved for others is in neither.
func DiskFree(dir string) (free, total uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	size := uint64(s.Bsize)
	free = uint64(s.Bavail)
	return free * size, (uint64(s.Blocks) - uint64(s.Bfree) + free) * size, nil
}

func allocated(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(s.Blocks) * 512
	}
	return info.Size()
}

// identity tells a folder from another one at the same path.
func identity(info fs.FileInfo) folderID {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return folderID{}
	}
	return folderID{Device: uint64(s.Dev), Inode: uint64(s.Ino)}
}

// writable reports whether this user may write into a folder.
func writable(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }

// syncFolder makes a rename in a folder durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
