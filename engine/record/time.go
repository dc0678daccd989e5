package record

import "time"

// Time is the shard's clock in nanoseconds since the Unix epoch. It never goes
// back, and it stands still while the whole process was paused.
type Time int64

// Add returns the time d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Never is a time that does not come.
const Never = Time(1<<63 - 1)
