//go:build unix

package filejournal

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock reports whether another process holds the directory.
func lock(dir *os.File) (held bool, err error) {
	for {
		switch err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return true, nil
		default:
			return false, err
		}
	}
}

func fileID(fd int) (device, inode uint64, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, 0, err
	}
	return uint64(st.Dev), uint64(st.Ino), nil
}
