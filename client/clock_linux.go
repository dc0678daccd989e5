package client

import (
	"time"

	"golang.org/x/sys/unix"
)

// slept is how long the machine has slept since it was started: what its two
// clocks differ by.
func slept() time.Duration {
	var awake, all unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) != nil {
		return 0
	}
	// The two readings are some time apart: what is below a second is noise.
	return time.Duration(all.Nano() - awake.Nano()).Truncate(time.Second)
}
