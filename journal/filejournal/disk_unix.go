//go:build unix

package filejournal

import "golang.org/x/sys/unix"

// canOwn reports whether a directory can be locked and synced.
const canOwn = true

func fileID(fd int) (device, inode uint64, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, 0, err
	}
	return uint64(st.Dev), uint64(st.Ino), nil
}

// freeBytes returns how many bytes the server's user can still write where a directory is.
func freeBytes(dir string) (free int64, ok bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(uint64(st.Bavail) * uint64(st.Bsize)), true
}
