package engine

import (
	"time"

	"github.com/interlockdev/interlock"
)

// The queries of this file read the state and change nothing. Like an effect,
// what they return may leave only when everything decided so far is durable.
// Text in it came from agents.

// KeyView is a key as callers of its namespace see it.
type KeyView struct {
	Key     interlock.Key
	Holders []interlock.Holder // the holders of this key, an ancestor or a descendant
	More    int                // holders not shown
	Waiters []WaiterView       // at most MaxShownWaiters, in the order of the line
	Length  int                // of the line
	// the lowest fence that a guard may still accept: of a free key, the next that is given out
	FenceFloor interlock.Fence
	Notes      []interlock.Note
	HoldTime   time.Duration // how long keys like this one are usually held; 0 when never seen
	Pattern    string        // name of the pattern that it fits, "" for none
	Capacity   *interlock.Capacity
	Generation uint64 // of the barrier that its holders belong to
	Broken     bool   // the barrier has lost a party: it cannot open again, and is free when its holders have released
}

// PartView is the part of a shared-out key to which a resource belongs.
type PartView struct {
	Number int
	Parts  int // of the key
	Key    interlock.Key
	Holder *interlock.Holder // the member that has it; nil for none at the moment
}

// WaiterView is a waiter as others see it.
type WaiterView struct {
	Agent    string
	Owner    string // the principal that it belongs to, or that submitted the task; "" without credentials
	Session  string
	Flow     string
	Purpose  string
	Count    uint32 // permits, parties or parts
	Mode     interlock.Mode
	Priority int // with which it waits: its own, or one that it inherits
	Position int
	Waited   time.Duration
	ETA      time.Duration
	Offered  bool

	// Of a task, that was submitted by Agent and is in line instead of it.
	Task    interlock.TaskID
	Queue   string
	Dormant bool // it waits for a worker, and blocks no others meanwhile
}

// MaxShownWaiters bounds the waiters listed for one key.
const MaxShownWaiters = 100

// KeyRow is a line of a listing.
type KeyRow struct {
	Key     interlock.Key
	Holders []interlock.Holder // at most MaxShownHolders explicit ones
	More    int
	Length  int
}

// KeyFilter chooses keys for a listing. Keys with neither holder nor waiter of
// their own are never listed.
type KeyFilter struct {
	Prefix  string
	Held    bool // only held ones
	Waiting bool // only those with a line
	After   interlock.Key
	Limit   int // 0 means 100, at most 1,000
}

// WaitEdge is an edge of the wait-for graph: Waiter waits for Blocker.
type WaitEdge struct {
	Waiter  FlowRef
	Blocker FlowRef
	Key     interlock.Key
	Mode    interlock.Mode
	Has     interlock.Claim  // the claim that makes Blocker block: of Key, or of a key above or below it
	Ahead   bool             // Blocker does not hold the key, but stands in line before
	Task    interlock.TaskID // the task that Waiter waits for; Blocker has it, or is its place in line, or empty
	Waited  time.Duration
}

// FlowRef is a vertex of the wait-for graph. Request distinguishes anonymous ones: the number of
// the request that holds or waits here.
type FlowRef struct {
	Agent   string           `fingerprint:"2"`
	Session string           `fingerprint:"1"`
	Flow    string           `fingerprint:"3"`
	Request uint64           `fingerprint:"-"`
	Task    interlock.TaskID `fingerprint:"-"` // of a task that waits instead of Agent, which submitted it
}

// HotKey is a key with much traffic.
type HotKey struct {
	Key     interlock.Key
	Holders int
	Length  int
}

// Counts are the sizes of things, for metrics.
type Counts struct {
	Namespaces int
	Keys       int
	Leases     int
	Waiters    int
	Sessions   int
	Documents  int
	StateBytes int // of the documents, as interlock.MaxStateBytes counts them
}
