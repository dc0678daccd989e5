package filejournal

import (
	"cmp"
	"os"
	"sync"

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
func allocate(_ *os.File, fd int, size int64) error {
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

// zeros has zeros at the beginning of a page, as direct writes need them. It is mapped,
// and never written to, so that it takes no memory.
var zeros = sync.OnceValue(func() []byte {
	b, err := unix.Mmap(-1, 0, zeroStep, unix.PROT_READ, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return make([]byte, zeroStep)
	}
	return b
})

// zeroDirectly writes zeros to whole pages past the page cache. Not every file system
// can: the error is then EINVAL, and the pages are as they were.
func (f *diskFile) zeroDirectly(off, end int64) error {
	flags, err := unix.FcntlInt(uintptr(f.fd), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(f.fd), unix.F_SETFL, flags|unix.O_DIRECT); err != nil {
		return err
	}
	err = f.zeroCached(off, end)
	_, reset := unix.FcntlInt(uintptr(f.fd), unix.F_SETFL, flags)
	return cmp.Or(reset, err)
}

// syncData does not write the file's times, which is one device flush less.
func syncData(_ *os.File, fd int) error {
	for {
		if err := unix.Fdatasync(fd); err != unix.EINTR {
			return err
		}
	}
}
