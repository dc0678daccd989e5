package bench

import (
	"os"
	"syscall"
)

// syncFlag makes every write of a file durable before it returns.
const syncFlag = syscall.O_DSYNC

// syncData makes the content of a file durable, and not its times, as the journal does.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
