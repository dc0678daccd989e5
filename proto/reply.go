package proto

import (
	"time"

	"github.com/interlockdev/interlock"
)

// The outcomes of replies. The numbers are those of session.proto.
const (
	Granted = interlock.OutcomeGranted
	Queued  = interlock.OutcomeQueued
	Skipped = interlock.OutcomeSkipped
	Done    = interlock.OutcomeDone
	Refused = interlock.OutcomeRefused
	Warned  = interlock.OutcomeWarned
	Lost    = interlock.OutcomeLost
	Asked   = interlock.OutcomeAsked
)

// Reply is an answer, or with Seq 0 a push.
type Reply struct {
	Outcome interlock.Outcome
	Slot    uint32
	Seq     uint64
	Index   interlock.Index

	Lease   interlock.Lease // where it has an id; its Stale stands in Packet
	Ticket  *interlock.Ticket
	Session *Session
	Losses  []Loss
	// WantsList asks for a heartbeat with a list of the known leases.
	WantsList bool

	Code     interlock.Code
	Message  string
	EndedBy  string
	Conflict *interlock.Conflict
	Advice   *interlock.Advice
	Warnings []string

	Patterns []interlock.Pattern
	More     bool // there are more rows than listed
	Settings *interlock.Settings

	Version    interlock.Version
	Documents  []interlock.Document
	Packet     *interlock.Packet
	Effects    []interlock.Effect
	Contention []interlock.Contention

	Tasks  []interlock.Task
	Handed []interlock.Assignment // what a pull got
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

// Error makes an *interlock.Error of a refusal. epoch and shard are the frame's.
func (r *Reply) Error(shard uint32, epoch interlock.Epoch) *interlock.Error {
	e := &interlock.Error{
		Code: r.Code, Message: r.Message, EndedBy: r.EndedBy,
		At: interlock.At{Shard: int(shard), Epoch: epoch, Index: r.Index},
	}
	if r.Advice != nil {
		e.Advice = *r.Advice
	}
	if c := r.Conflict; c != nil {
		e.Key, e.ConflictKind, e.Holders, e.Cycle = c.Key, c.Kind, c.Holders, c.Cycle
		e.Nearest, e.Capacity = c.Nearest, c.Capacity
		line := c.Line
		e.Line = &line
	}
	return e
}
