package advice

import (
	"time"

	"github.com/interlockdev/interlock"
)

// The bounds of a Reducer.
const (
	MaxOpen     = 50_000 // leases, and requests in line
	MaxKeys     = 10_000
	MaxEdges    = 8_192 // pairs of keys, one taken while the other is held
	MaxClasses  = 1_000
	MaxPatterns = 1_000
	MaxHeld     = 16 // leases of one flow that count for the order of keys
	MaxExamples = 5  // indexes in an advice
	MaxOfKind   = 20 // advices of one kind
)

// What advice needs at least.
const (
	minWaits    = 5               // waits that a coarse key was compared for
	coarseShare = 80              // percent of them that touched other children
	minHolds    = 20              // holds of a class, or grants of permits
	minLosses   = 2               // leases that ended by a ttl that is too short
	hotWaits    = 10              // waits at a hot key
	hotLost     = time.Minute     // their sum
	hotShare    = 20              // percent of the time lost in the namespace
	roomForTTL  = 3 * time.Second // at least this much more than the p99 hold is advised
	unusedShare = 50              // percent of the capacity that is used at most
)

// Kind is the kind of an advice. The texts are in answers.
type Kind string

// The kinds of advice: see the package comment.
const (
	LockOrder      Kind = "lock_order"
	CoarseKey      Kind = "coarse_key"
	ShortTTL       Kind = "short_ttl"
	UnusedCapacity Kind = "unused_capacity"
	HotKey         Kind = "hot_key"
)

// Kinds are all kinds, the most useful first.
var Kinds = []Kind{LockOrder, CoarseKey, HotKey, ShortTTL, UnusedCapacity}

// Advice is one change that would help.
type Advice struct {
	Kind      Kind
	Namespace interlock.Namespace
	Keys      []interlock.Key // of LockOrder in the order to take them in; else the key, or an example
	Class     string          // of ShortTTL: the class of the keys
	Pattern   string          // the pattern that fits the keys, if it was set by SetPattern or by an event
	Agents    []string        // of LockOrder
	Text      string          // sentences with the evidence
	Command   string          // changes it, or shows how; the caller fills in words in capital letters
	// Count of Of observations support it: orders that are against the one advised, waits at other children, leases that
	// ended by their ttl; of UnusedCapacity the permits used at most, of the capacity; of HotKey waits at the key.
	Count, Of int
	Deadlocks int               // of LockOrder
	Lost      time.Duration     // the time lost in the waits concerned
	P99       time.Duration     // of ShortTTL: the hold
	TTL       time.Duration     // of ShortTTL: the longest one of a lease that was lost
	Indexes   []interlock.Index // examples
}

// Result is what a Reducer learned.
type Result struct {
	Advice []Advice // by kind, then by deadlocks and the time lost
	Left   int      // leases, keys and pairs that were left out for lack of room
}
