//go:build unix

package serve

import "golang.org/x/sys/unix"

// mayOpen is how many file descriptors the process may have; 0 when that is not known. The
// runtime has raised it to what the system allows.
func mayOpen() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur)
}

// addressSpace is how much of it the process may have; 0 for any.
func addressSpace() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &limit) != nil || limit.Cur > 1<<60 {
		return 0
	}
	return uint64(limit.Cur)
}
