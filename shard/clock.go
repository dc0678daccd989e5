package shard

import (
	"sync"
	"time"

	"github.com/interlockdev/interlock/engine"
)

// Clock is where time enters. A Clock serves one shard.
type Clock interface {
	// Now is the time in nanoseconds since the Unix epoch. It never goes back. Any
	// number of goroutines call it, with a lock of the shard held.
	Now() engine.Time

	// SetAlarm asks for a value on Alarm's channel once Now has reached at. It
	// replaces an earlier one. One goroutine calls it. An alarm that comes early or twice does no harm.
	SetAlarm(at engine.Time)

	// Alarm is the channel on which alarms arrive. It is always the same.
	Alarm() <-chan struct{}
}

const (
	// pulseEvery is how often the clock looks at itself, so that it can tell a
	// paused process from an idle one.
	pulseEvery = 250 * time.Millisecond

	// pauseAbove is how much time between two looks counts as a pause.
	pauseAbove = time.Second
)

// wallClock is wall time when it is made and monotonic from then on, without the
// gaps in which the process did not run.
//
// The clock is read at least every 250 ms: by the shard, or else by the clock's own pulse. If
// more than 1 s has passed between two looks, the process was stopped (SIGSTOP, a debugger, a
// frozen virtual machine, or so little processor time that it comes to the same), no heartbeat
// could be read, and the whole of that time is left out: the clock continues from the earlier
// look. So leases live longer by the pause, and by up to 250 ms more. Shorter pauses are not
// left out; the shortest ttl is 1 s.
//
//	look      look                              look      look
//	  │ 250 ms  │            stopped 20 s         │ 250 ms  │
//	  ├─────────┼─────────────────────────────────┼─────────┤
//	 10.00    10.25                             10.25     10.50     this clock
//
// A suspended machine needs none of this on Linux and macOS: Go's monotonic
// clock there does not count the time in suspend (CLOCK_MONOTONIC, not
// CLOCK_BOOTTIME), so no gap is seen and none is counted. Where the monotonic
// clock runs on in suspend, the gap is seen and left out as above. Either way the
// clock is behind wall time afterwards, until the next start of the process.
type wallClock struct {
	gaps  gapClock
	base  engine.Time // wall time at the start
	start time.Time

	alarm chan struct{}
	timer *time.Timer
	end   chan struct{}
	once  sync.Once
}

func newWallClock() *wallClock {
	now := time.Now()
	c := &wallClock{
		base: engine.Time(now.UnixNano()), start: now,
		alarm: make(chan struct{}, 1), end: make(chan struct{}),
	}
	c.timer = time.AfterFunc(time.Hour, c.ring)
	c.timer.Stop()
	go c.pulse()
	return c
}

func (c *wallClock) Now() engine.Time {
	return c.base.Add(c.gaps.look(time.Since(c.start)))
}

func (c *wallClock) SetAlarm(at engine.Time) { c.timer.Reset(at.Sub(c.Now())) }

func (c *wallClock) Alarm() <-chan struct{} { return c.alarm }

func (c *wallClock) ring() {
	select {
	case c.alarm <- struct{}{}:
	default:
	}
}

func (c *wallClock) pulse() {
	t := time.NewTicker(pulseEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			c.Now()
		case <-c.end:
			return
		}
	}
}

func (c *wallClock) stop() {
	c.once.Do(func() {
		c.timer.Stop()
		close(c.end)
	})
}

// gapClock leaves the gaps out of a monotonic clock.
type gapClock struct {
	mu      sync.Mutex
	last    time.Duration // the result of the last look
	skipped time.Duration // sum of the gaps
}

// look turns the monotonic time since the start into the time without gaps.
// Looks may be given out of order by a hair, when two goroutines look at once.
func (g *gapClock) look(since time.Duration) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if since > g.last {
		if gap := since - g.last; gap > pauseAbove {
			g.skipped += gap
		}
		g.last = since
	}
	return g.last - g.skipped
}
