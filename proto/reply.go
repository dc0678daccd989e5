package proto

import (
	"time"

	"github.com/interlockdev/interlock"
)

// Outcome is the kind of a reply. The numbers are those of session.proto and of engine.Outcome.
type Outcome uint8

const (
	Granted Outcome = 1 + iota
	Queued
	Skipped
	Done
	Refused
	Warned
	Lost
	Asked
)

// Reply is an answer, or with Seq 0 a push.
type Reply struct {
	Outcome Outcome
	Slot    uint32
	Seq     uint64
	Index   interlock.Index

	Lease   interlock.Lease // where it has an id; its Stale stands in Packet
	Ticket  *interlock.Ticket
	Session *Session
	Losses  []Loss

	Code     interlock.Code
	Message  string
	EndedBy  string
	Conflict *Conflict
	Advice   *interlock.Advice
	Warnings []string

	Patterns []interlock.Pattern
	More     bool // there are more rows than listed
	Settings *interlock.Settings

	Version    interlock.Version
	Documents  []interlock.Document
	Packet     *interlock.Packet
	Effects    []interlock.Effect
	Contention []Contention

	Tasks  []interlock.Task
	Handed []Assignment // what a pull got
	Queues []interlock.QueueStatus
	Log    []interlock.LogEntry
	Next   uint64 // with More tasks: the listing goes on after it

	// AsAsked means that claims, flow and purpose of the Lease are those of the acquire that this
	// answers, its agent and session those of the session, and that they are left out.
	AsAsked bool
}

// Session is a session as its client sees it.
type Session struct {
	ID        interlock.SessionID
	Name      string // public name
	Agent     string
	TTL       time.Duration
	ExpiresIn time.Duration
}

// Loss is a lease about which its session must know something: it is gone (Code is the reason), or
// it is in its soft tier or in grace (State).
type Loss struct {
	Lease   interlock.Lease
	Code    interlock.Code
	Message string // what happened
}

// Conflict is what stands in a request's way.
type Conflict struct {
	Key     interlock.Key
	Kind    interlock.ConflictKind
	Holders []interlock.Holder
	More    int // holders not shown
	Queue   interlock.Queue
	Cycle   []interlock.CycleStep

	Capacity *interlock.Capacity
	Nearest  []string
}

// Contention is how commits and leases fare at the keys of a pattern, and which of
// the two would fare better; nil when there is nothing to say.
type Contention struct {
	interlock.Contention
	Advice *interlock.Advice
}

// Assignment is a task in a worker's hands.
type Assignment struct {
	Task      interlock.Task
	Lease     interlock.Lease
	Documents []interlock.Document
	AsOf      interlock.Version
}

// Error makes an *interlock.Error of a refusal. epoch and shard are the frame's.
func (r *Reply) Error(shard uint32, epoch interlock.Epoch) *interlock.Error {
	e := &interlock.Error{Code: r.Code, Message: r.Message, EndedBy: r.EndedBy, At: interlock.At{Shard: int(shard), Epoch: epoch, Index: r.Index}}
	if r.Advice != nil {
		e.Advice = *r.Advice
	}
	if c := r.Conflict; c != nil {
		e.Key, e.ConflictKind, e.Holders, e.Cycle = c.Key, c.Kind, c.Holders, c.Cycle
		e.Nearest, e.Capacity = c.Nearest, c.Capacity
		queue := c.Queue
		e.Queue = &queue
	}
	return e
}
