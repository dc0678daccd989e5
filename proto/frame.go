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
	OpOpen         OpKind = 4
	OpAttach       OpKind = 5
	OpHeartbeat    OpKind = 6
	OpClose        OpKind = 7
	OpAcquire      OpKind = 8
	OpPoll         OpKind = 9
	OpLeave        OpKind = 10
	OpGetLease     OpKind = 11
	OpRenew        OpKind = 12
	OpRelease      OpKind = 13
	OpCheckFence   OpKind = 14
	OpConvert      OpKind = 15
	OpArrive       OpKind = 16
	OpPark         OpKind = 17
	OpResume       OpKind = 18
	OpDeclare      OpKind = 19
	OpSetPattern   OpKind = 20
	OpDropPattern  OpKind = 21
	OpListPatterns OpKind = 22
	OpConfigure    OpKind = 23
	OpGetSettings  OpKind = 24

	lastOp = OpGetSettings
)

// Op is one operation. It is a union: session.proto says which fields each Kind
// uses, and the others must be zero.
type Op struct {
	Kind       OpKind
	OnConflict interlock.OnConflict
	Division   interlock.Division
	Any        bool
	Free       bool
	Keep       bool
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
	Prefix    string
	Group     string
	Key       interlock.Key
	Fence     interlock.Fence
	Outcome   string
	Note      string // of a release; of parking, the reason
	Progress  string
	Name      string // of a pattern

	Claims    []interlock.Claim
	TTL       time.Duration // of parking, for how long
	Grace     time.Duration
	MaxHold   time.Duration
	Stall     time.Duration
	LockDelay time.Duration
	MaxWait   time.Duration

	On       *Party
	Pattern  *interlock.Pattern
	Settings *interlock.Settings
}

// Party is whom a declared wait is for: by the public name of its session, or by
// the name of an agent that has one session.
type Party struct {
	Session string
	Agent   string
	Flow    string
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
	Asked
)

// Reply is an answer, or with Seq 0 a push.
type Reply struct {
	Outcome Outcome
	Slot    uint32
	Seq     uint64
	Index   interlock.Index

	Lease   interlock.Lease // where it has an id
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
	More     bool // there are more patterns after these
	Settings *interlock.Settings
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
