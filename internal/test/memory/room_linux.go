package memory

import "syscall"

// least is the room that the tests of a package never need: 1 GiB.
const least = 1 << 30

// roomy reports whether a folder has room enough.
func roomy(folder string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(folder, &s) == nil && s.Bavail*uint64(s.Bsize) >= least
}
