package sim

import (
	"time"

	"github.com/interlockdev/interlock/engine"
)

// clock is the time of one process: wall time at its start, and then a monotonic clock
// that is a little fast or slow, without the gaps in which the process was stopped for
// more than a second, as the shard's own clock leaves them out.
type clock struct {
	o     *owner
	start time.Duration
	base  engine.Time
	gaps  time.Duration
	last  engine.Time
	alarm engine.Time // the earliest one that is planned; 0 for none
}

func (c *clock) Now() engine.Time {
	at := c.base.Add(time.Duration(float64(c.o.h.w.now-c.start) * c.o.h.drift)).Add(-c.gaps)
	c.last = max(c.last, at)
	return c.last
}

func (c *clock) paused(d time.Duration) {
	if d > time.Second {
		c.gaps += time.Duration(float64(d) * c.o.h.drift)
	}
}

// SetAlarm plans the owner's turn for when the clock will show at.
func (c *clock) SetAlarm(at engine.Time) {
	if c.alarm != 0 && c.alarm <= at {
		return
	}
	c.alarm = at
	d := time.Duration(float64(at.Sub(c.Now())) / c.o.h.drift)
	c.o.soon(max(d, 1), func() {
		if c.alarm == at {
			c.alarm = 0
		}
		if o := c.o; !o.stepping { // at this very moment, so that nothing can be early unseen
			for o.shard != nil && o.shard.Turn() {
			}
			o.step()
		}
	})
}

func (c *clock) Alarm() <-chan struct{} { return nil }
