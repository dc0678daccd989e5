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
