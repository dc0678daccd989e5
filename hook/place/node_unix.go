//go:build unix

package place

import "syscall"

// node returns the device and the inode of a folder.
func node(dir string) (device, inode uint64, ok bool) {
	var info syscall.Stat_t
	if syscall.Stat(dir, &info) != nil {
		return 0, 0, false
	}
	return uint64(info.Dev), uint64(info.Ino), true // their types differ between systems
}
