package filejournal

import (
	"os"

	"golang.org/x/sys/unix"
)

// networkFileSystem names the network file system that the directory is on, or
// returns "". FUSE and 9p are let through: see docs/journal.md.
func networkFileSystem(dir *os.File) string {
	var st unix.Statfs_t
	if unix.Fstatfs(int(dir.Fd()), &st) != nil {
		return ""
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "SMB"
	case unix.CEPH_SUPER_MAGIC:
		return "Ceph"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "AFS"
	case unix.CODA_SUPER_MAGIC:
		return "Coda"
	case unix.NCP_SUPER_MAGIC:
		return "NCP"
	case 0x0bd00bd0:
		return "Lustre"
	case 0x01161970:
		return "GFS2"
	case unix.OCFS2_SUPER_MAGIC:
		return "OCFS2"
	}
	return ""
}

// allocate falls back to a plain extension where the file system cannot allocate;
// the zeros that are written next then take the blocks.
func allocate(fd int, size int64) error {
	for {
		switch err := unix.Fallocate(fd, 0, 0, size); err {
		case unix.EINTR:
		case unix.EOPNOTSUPP, unix.ENOSYS:
			return unix.Ftruncate(fd, size)
		default:
			return err
		}
	}
}

// syncData does not write the file's times, which is one device flush less.
func syncData(_ *os.File, fd int) error {
	for {
		if err := unix.Fdatasync(fd); err != unix.EINTR {
			return err
		}
	}
}
