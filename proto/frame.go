package proto

import (
	"slices"
	"time"

	"github.com/interlockdev/interlock"
)

// A stream is one line, so what is large in it delays what comes behind it. So a client ends a
// frame behind a bulky operation, and sends what is not bulky and became ready meanwhile before the
// next one. A server answers in the order of its decisions. It ends a frame that is full, and reads
// nothing more from a client that has too much on its way.
const (
	// MaxOpBytes bounds an operation, encoded: a commit of interlock.MaxCommitBytes
	// with as many keys as it may have, and some more, so that what is too much is
	// refused by the server with a code and not by ending the stream.
	MaxOpBytes = interlock.MaxCommitBytes + 1<<20

	// BulkBytes is above what an operation is bulky.
	BulkBytes = 64 << 10

	// MaxFrameBytes bounds a client's frame, encoded: a bulky operation behind 1 MiB of
	// others. A server answers a larger one by ending the stream.
	MaxFrameBytes = MaxOpBytes + 1<<20

	// FullFrameBytes is at how many bytes a server ends a frame.
	FullFrameBytes = 1 << 20
)

// ClientFrame is what a client sends.
type ClientFrame struct {
	Ops []Op
}

// Reset empties the frame and keeps its memory.
func (f *ClientFrame) Reset() {
	clear(f.Ops)
	f.Ops = f.Ops[:0]
}

// next appends an empty operation. What lies behind the last one is empty, since Reset
// leaves nothing.
func (f *ClientFrame) next() *Op {
	n := len(f.Ops)
	f.Ops = slices.Grow(f.Ops, 1)[:n+1]
	return &f.Ops[n]
}

// OpKind is the operation of an Op. The numbers are those of the oneof's fields in session.proto.
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
	OpCommit       OpKind = 25
	OpReadState    OpKind = 26
	OpReadHistory  OpKind = 27
	OpClaimEffect  OpKind = 28
	OpSettleEffect OpKind = 29
	OpGetEffect    OpKind = 30
	OpListEffects  OpKind = 31
	OpContention   OpKind = 32

	OpSubmitTask    OpKind = 33
	OpPullTasks     OpKind = 34
	OpAckTask       OpKind = 35
	OpNackTask      OpKind = 36
	OpAskHuman      OpKind = 37
	OpAnswerTask    OpKind = 38
	OpChangeTask    OpKind = 39
	OpFollowTask    OpKind = 40
	OpGetTask       OpKind = 41
	OpListTasks     OpKind = 42
	OpSetQueue      OpKind = 43
	OpDropQueue     OpKind = 44
	OpListQueues    OpKind = 45
	OpReadLog       OpKind = 46
	OpStartRun      OpKind = 47
	OpRevertPattern OpKind = 48

	lastOp = OpRevertPattern
)

// Op is one operation. It is a union: session.proto defines which fields each Kind uses, and the
// others must be zero.
type Op struct {
	Kind       OpKind
	Free       bool
	Keep       bool
	Unapproved bool
	Bodies     bool
	Brief      bool // leave out of the answers what the caller knows
	Slot       uint32
	Seq        uint64
	Acked      uint64

	ID        [16]byte // the session, ticket, lease, effect or task
	RequestID string
	Agent     string
	Key       interlock.Key
	Fence     interlock.Fence
	Outcome   string
	Note      string // of a release; of parking, the reason
	Progress  string
	Name      string // of a pattern or a queue
	Revision  uint64 // of a pattern

	// LeaseRequest is of OpAcquire. Other kinds use some of its fields: TTL is also of a
	// session, a pull, an effect and of parking, Group also of a listing.
	interlock.LeaseRequest

	On       *Party
	Pattern  *interlock.Pattern
	Settings *interlock.Settings
	Commit   *interlock.CommitRequest // never nil for OpCommit; of OpAckTask what it commits, with its note
	State    *StateQuery              // never nil for OpReadState
	Effect   *EffectOp                // never nil for operations about effects
	Task     *TaskOp                  // never nil for operations about tasks, but OpGetTask
	Queue    *interlock.TaskQueue
	Run      *RunOp // never nil for OpStartRun
}

// Party is the target of a declared wait: by the public name of its session, or by the name of an
// agent that has one session.
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

// Next appends an empty reply, to be filled in. What lies behind the last one is empty,
// since Reset leaves nothing.
func (f *ServerFrame) Next() *Reply {
	n := len(f.Replies)
	f.Replies = slices.Grow(f.Replies, 1)[:n+1]
	return &f.Replies[n]
}

// GoAway announces that the server stops soon.
type GoAway struct {
	RetryAfter time.Duration
	Message    string
}

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

// Bulk is about how many bytes of the reply can be large.
func (r *Reply) Bulk() (n int) {
	for i := range r.Documents {
		n += 256 + len(r.Documents[i].Body)
	}
	if r.Packet != nil {
		n += len(r.Packet.Message)
		for i := range r.Packet.Changes {
			n += 512 + len(r.Packet.Changes[i].Diff.Text)
		}
	}
	for i := range r.Effects {
		n += 256 + len(r.Effects[i].Action) + len(r.Effects[i].Result)
	}
	for i := range r.Patterns {
		n += PatternSize(&r.Patterns[i])
	}
	for i := range r.Tasks {
		n += TaskBulk(&r.Tasks[i])
	}
	for i := range r.Handed {
		n += r.Handed[i].Bulk()
	}
	for i := range r.Queues {
		n += QueueSize(&r.Queues[i].TaskQueue)
	}
	for i := range r.Log {
		n += EntryBulk(&r.Log[i])
	}
	return n
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
