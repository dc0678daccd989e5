package store

// Eligibility is how a task that waits stands in line. It is volatile.
type Eligibility uint8

const (
	QueuedBehindSibling Eligibility = iota // a task of its own queue blocks it, or it was not checked yet
	BlockedByOthers                        // others do, or it is about to be looked at
	Runnable                               // nothing does, and it has not found a worker yet
	Idle                                   // nothing did, and it had no worker
)

// IsYielding reports whether a task blocks only those of its own queue.
func (s Eligibility) IsYielding() bool { return s == QueuedBehindSibling || s == Idle }
