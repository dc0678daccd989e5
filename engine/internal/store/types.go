package store

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Time is the clock of the shard, as entries have it.
type Time = record.Time

// Caller is the recipient of an effect. The engine keeps it and hands it back, and never looks
// inside. nil means that there is no listener.
type Caller any

// Loss is a change of a lease that its session must learn: it is gone (Code has the reason), or
// it is in its soft tier or in grace (State).
type Loss struct {
	Lease   interlock.Lease
	Code    interlock.Code
	Message *message.Text // what happened
	LeftOut bool          // the client's list of its leases left it out
}

// Conflict describes the blockers of a request, with what sentences about them need besides.
type Conflict struct {
	interlock.Conflict

	// Where no holder blocks, only waiters ahead in line: their number, and the key, Key or an
	// ancestor, that they wait for. Holders are then the blockers of the first of them.
	Ahead   int
	LineKey interlock.Key

	Group   string // the group that its permits were requested for
	Writing bool   // a write met the lease, not a request for one
}
