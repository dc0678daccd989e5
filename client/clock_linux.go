package client

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// slept returns how long the machine has slept since it was started: the difference of its two
// clocks.
func slept() time.Duration {
	var awake, all unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) != nil {
		return 0
	}
	// The readings are some time apart, so small differences mean nothing.
	last, d := lastSlept.Load(), all.Nano()-awake.Nano()
	if d < last+int64(time.Second/2) {
		return time.Duration(last)
	}
	lastSlept.Store(d)
	return time.Duration(d)
}

var lastSlept atomic.Int64
