package proto

import (
	"time"

	"github.com/interlockdev/interlock"
)

// OpKind is the operation of an Op. session_gen.go has the kinds, with the numbers of the oneof's
// fields in session.proto.
type OpKind uint8

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

	On       *WaitTarget
	Known    *interlock.KnownLeases // of OpHeartbeat
	Pattern  *interlock.Pattern
	Settings *interlock.Settings
	Commit   *interlock.CommitRequest // never nil for OpCommit; of OpAckTask what it commits, with its note
	State    *StateQuery              // never nil for OpReadState
	Effect   *EffectOp                // never nil for operations about effects
	Task     *TaskOp                  // never nil for operations about tasks, but OpGetTask
	Queue    *interlock.TaskQueue
	Run      *RunOp // never nil for OpStartRun
}

// WaitTarget is the target of a declared wait: by the public name of its session, or by the name of an
// agent that has one session.
type WaitTarget struct {
	Session string
	Agent   string
	Flow    string
}

// StateQuery selects documents: those of Keys, or a list.
type StateQuery struct {
	Keys  []interlock.Key
	After interlock.Key
	Limit uint32
}

// EffectOp holds the fields of an operation about effects. Like Op it is a union. The flow, the ids
// of effect and lease, and the ttl stand in the Op.
type EffectOp struct {
	Tool      string
	Target    string
	Arguments []byte // JSON
	Claim     interlock.EffectID

	Digest [32]byte // of a listing: begin after it
	State  interlock.EffectState
	Result []byte // JSON
	Reason string
	Limit  uint32
}

// TaskOp holds the fields of an operation about tasks. Like Op it is a union. The ids, the flow,
// the ttl, and the group and key of a listing stand in the Op, and what an acknowledgement
// commits, with its note, in its Commit.
type TaskOp struct {
	Attach  bool
	Dead    bool
	Verdict interlock.Verdict
	Change  TaskChange
	State   interlock.TaskState
	Limit   uint32 // of a pull, a listing or a log
	From    uint64 // of a log; of a listing what it goes on after
	Delay   time.Duration

	Queue  string
	By     string
	Reason string
	Result []byte // JSON

	Specs    []interlock.TaskSpec // of a submission, the one; of an acknowledgement, what is to be done next
	Question *interlock.Question
}

// TaskChange is what is done with a task that does not run. The numbers are those of
// session.proto and of engine.TaskChange.
type TaskChange uint8

const (
	CancelTask TaskChange = 1 + iota
	RescheduleTask
	ReplayTask
	DiscardTask
)

// RunOp is which run is to be started.
type RunOp struct {
	Org, Workflow string
}
