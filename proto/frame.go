package proto

import (
	"time"

	"github.com/interlockdev/interlock"
)

// MaxFrameBytes bounds a client's frame, encoded. A server answers a larger one
// by ending the stream.
const MaxFrameBytes = interlock.MaxBodyBytes

// ClientFrame is what a client sends.
type ClientFrame struct {
	Ops []Op
}

// Reset empties the frame and keeps its memory.
func (f *ClientFrame) Reset() {
	clear(f.Ops)
	f.Ops = f.Ops[:0]
}

// OpKind says which operation an Op is. The numbers are those of the oneof's
// fields in session.proto.
type OpKind uint8

const (
	OpOpen       OpKind = 4
	OpAttach     OpKind = 5
	OpHeartbeat  OpKind = 6
	OpClose      OpKind = 7
	OpAcquire    OpKind = 8
	OpPoll       OpKind = 9
	OpLeave      OpKind = 10
	OpGetLease   OpKind = 11
	OpRenew      OpKind = 12
	OpRelease    OpKind = 13
	OpCheckFence OpKind = 14
)

// Op is one operation. It is a union: session.proto says which fields each Kind
// uses, and the others must be zero.
type Op struct {
	Kind       OpKind
	OnConflict interlock.OnConflict
	Slot       uint32
	Priority   int32
	Seq        uint64
	Acked      uint64

	ID        [16]byte // the session, ticket or lease
	RequestID string
	Agent     string
	Flow      string
	Purpose   string
	Trace     string
	Key       interlock.Key
	Fence     interlock.Fence
	Outcome   string
	Note      string
	Progress  string

	Claims  []interlock.Claim
	TTL     time.Duration
	Grace   time.Duration
	MaxHold time.Duration
}

// ServerFrame is what a server sends.
type ServerFrame struct {
	Shard   uint32
	Epoch   interlock.Epoch
	Replies []Reply
	GoAway  *GoAway
}

// Reset empties the frame and keeps its memory.
func (f *ServerFrame) Reset() {
	clear(f.Replies)
	*f = ServerFrame{Replies: f.Replies[:0]}
}

// GoAway says that the server stops soon.
type GoAway struct {
	RetryAfter time.Duration
	Message    string
}

// Outcome says what kind of reply this is. The numbers are those of
// session.proto and of engine.Outcome.
type Outcome uint8

const (
	Granted Outcome = 1 + iota
	Queued
	Skipped
	Done
	Refused
	Warned
	Lost
)

// Reply is an answer, or with Seq 0 a push.
type Reply struct {
	Outcome Outcome
	Slot    uint32
	Seq     uint64
	Index   interlock.Index

	Lease   interlock.Lease // with Granted, Warned and Lost
	Ticket  *interlock.Ticket
	Session *Session
	Losses  []Loss

	Code     interlock.Code
	Message  string
	Conflict *Conflict
	Advice   *interlock.Advice
}

// Session is a session as its client sees it.
type Session struct {
	ID        interlock.SessionID
	Name      string // public name
	Agent     string
	TTL       time.Duration
	ExpiresIn time.Duration
}

// Loss is a lease about which its session must know something: it is gone (Code
// says why), or it is in its soft tier or in grace (State).
type Loss struct {
	Lease interlock.Lease
	Code  interlock.Code
}

// Conflict is what stands in a request's way.
type Conflict struct {
	Key     interlock.Key
	Kind    interlock.ConflictKind
	Holders []interlock.Holder
	More    int // holders not shown
	Queue   interlock.Queue
	Cycle   []interlock.CycleStep
}

// Error makes an *interlock.Error of a refusal. epoch and shard are the frame's.
func (r *Reply) Error(shard uint32, epoch interlock.Epoch) *interlock.Error {
	e := &interlock.Error{Code: r.Code, Message: r.Message, At: interlock.At{Shard: int(shard), Epoch: epoch, Index: r.Index}}
	if r.Advice != nil {
		e.Advice = *r.Advice
	}
	if c := r.Conflict; c != nil {
		e.Key, e.ConflictKind, e.Holders, e.Cycle = c.Key, c.Kind, c.Holders, c.Cycle
		queue := c.Queue
		e.Queue = &queue
	}
	return e
}
