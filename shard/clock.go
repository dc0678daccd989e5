package shard

import "github.com/interlockdev/interlock/engine"

// Clock is where time enters. A Clock serves one shard, which calls it from one
// goroutine.
type Clock interface {
	// Now is the time in nanoseconds since the Unix epoch. It never goes back.
	Now() engine.Time

	// SetAlarm asks for a value on Alarm's channel once Now has reached at. It
	// replaces an earlier one. An alarm that comes early or twice does no harm.
	SetAlarm(at engine.Time)

	// Alarm is the channel on which alarms arrive. It is always the same.
	Alarm() <-chan struct{}
}
