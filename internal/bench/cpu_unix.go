//go:build unix

package bench

import (
	"syscall"
	"time"
)

// ownCPU is the processor time that this process has used, that is the agents.
func ownCPU() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
