package engine

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// The commands about tasks: requests that wait instead of their agents.

// SetQueue registers a queue, or replaces its settings. Answered by Done.
type SetQueue struct {
	Head  `fingerprint:"17"`
	Queue interlock.TaskQueue `fingerprint:"1,stored=AppendQueue"`
}

// SwitchQueue changes whether a queue hands tasks out, and whether it accepts new ones; its
// other settings stay as they are. Answered by Done.
type SwitchQueue struct {
	Head   `fingerprint:"32"`
	Name   string `fingerprint:"1"`
	Paused Toggle `fingerprint:"2"`
	Drain  Toggle `fingerprint:"3"`
	Reason string `fingerprint:"4,omitzero"` // for the journal
}

// Toggle is a change of something that is on or off.
type Toggle uint8

const (
	AsIs Toggle = iota
	On
	Off
)

func (s Toggle) apply(on bool) bool { return s == On || s == AsIs && on }

// DropQueue forgets a queue that has no task which is not settled. Answered by Done.
type DropQueue struct {
	Head `fingerprint:"18"`
	Name string `fingerprint:"1"`
}

// TaskSpec is a task as it is submitted. The engine keeps the claims and the payload.
type TaskSpec struct {
	ID                 [16]byte `fingerprint:"-"` // fresh random bits
	interlock.TaskSpec `fingerprint:"1"`

	payload *body // by Prepare
}

// Submit puts a task into its queue. Answered by Done with Tasks (one). With Attach another
// answer follows when it is settled: Done, or Refused if it is dead or cancelled. The wait for
// it is an edge of the wait-for graph, if Head.Session is set; if a deadlock ends that wait,
// the other answer is Refused with CodeDeadlock, and the task continues.
type Submit struct {
	Head   `fingerprint:"19"`
	Agent  string   `fingerprint:"1"` // for a caller without a session
	Flow   string   `fingerprint:"2"`
	Task   TaskSpec `fingerprint:"3"`
	Attach bool     `fingerprint:"-"`
}

// Pull asks for tasks of a queue: at most Max, each granted to Head.Session and a flow of its
// own (the task's id), or without a session to the lease alone. Answered by Granted with Tasks,
// or, if no task could run, by Queued, and the worker is idle: Granted follows when there is
// one, as long as the caller listens (Detach and Leave with the ticket ID end it). A pull is
// not journaled, but its assignments are. Repeating it with the ids of leases from an earlier
// answer returns those that still run, even if there are none: so a caller that does not know
// whether it was answered can repeat it. Beyond interlock.MaxPulls, or interlock.MaxListeners
// without a session, no worker becomes idle: CodeTooManyWaiters.
type Pull struct {
	Head
	ID     [16]byte   // fresh random bits: the ticket of an idle worker
	Leases [][16]byte // fresh random bits: as many ids as Max
	Queue  string
	Max    int
	Agent  string // for a caller without a session
	TTL    time.Duration
	Attach bool
}

// Ack reports that the attempt under Lease did the task: its result, its writes and its
// follow-up tasks, all in one entry with the end of the lease. It is refused as a whole, and
// the attempt continues, if the commit is refused (stale, out of bounds, ...). Answered by Done
// with Tasks (it), Version and Documents.
type Ack struct {
	Head   `fingerprint:"20"`
	Lease  interlock.LeaseID `fingerprint:"1"`
	Result []byte            `fingerprint:"2"` // JSON; of a message, the reply
	Tasks  []TaskSpec        `fingerprint:"4"`
	// CommitRequest is the writes. Its Note is also for the next holder. Flow and Leases are
	// not used: they are those of the attempt. In the fingerprint, it is a Commit without Agent.
	interlock.CommitRequest `fingerprint:"3,blank"`

	bodies []body // by Prepare
}

// Nack ends the attempt under Lease without success. Answered by Done with Tasks (it).
type Nack struct {
	Head   `fingerprint:"21"`
	Lease  interlock.LeaseID `fingerprint:"1"`
	Reason string            `fingerprint:"2"`
	Delay  time.Duration     `fingerprint:"3"`       // until the next attempt; -1: at once; 0: by the task's backoff
	Dead   bool              `fingerprint:"4,bit=0"` // there is to be no other
	// Unseen means that the worker never heard of it: it waits again, and this was no attempt.
	Unseen bool `fingerprint:"4,bit=1"`
	// Jitter is fresh random bits, from which the pause is computed.
	Jitter uint64 `fingerprint:"-"`
}

// AskHuman ends the attempt under Lease, without counting it, until a person has
// answered. Answered by Done with Tasks (it).
type AskHuman struct {
	Head     `fingerprint:"23"`
	Lease    interlock.LeaseID  `fingerprint:"1"`
	Question interlock.Question `fingerprint:"2"`
}

// Answer is a person's word on a task that waits for it, or on a parked lease. Answered by
// Done with Tasks (it), or with Question.
type Answer struct {
	Head    `fingerprint:"24"`
	Task    interlock.TaskID  `fingerprint:"1"`
	Fence   interlock.Fence   `fingerprint:"2,omitzero"` // that the parked lease had, instead of Task
	Verdict interlock.Verdict `fingerprint:"3"`
	By      string            `fingerprint:"4"` // the person's name, beside Head.Actor
	Reason  string            `fingerprint:"5"`
	// Asked, if not 0, is when the only question that is answered was asked.
	Asked store.Time `fingerprint:"+1"`
}

// ChangeTask cancels a task that does not run, has it due at another time, or takes a
// dead one up again or forgets it. Answered by Done with Tasks (it).
type ChangeTask struct {
	Head   `fingerprint:"22"`
	Task   interlock.TaskID `fingerprint:"1"`
	Change TaskChange       `fingerprint:"2"`
	Delay  time.Duration    `fingerprint:"3"` // of Reschedule and Replay
	Reason string           `fingerprint:"4"`
}

// TaskChange is the kind of a ChangeTask.
type TaskChange uint8

const (
	CancelTask     TaskChange = 1 + iota
	RescheduleTask            // due after Delay, regardless of its schedule
	ReplayTask                // a dead or cancelled one, with all its attempts before it again
	DiscardTask               // a settled one is forgotten
)

// FollowTask asks for the state of a task. Answered by Done with Tasks (it); with Attach
// another answer follows as with Submit, as long as the caller listens (Detach and Leave with
// the task's id as the ticket end it for all that follow it over the link). Beyond
// interlock.MaxFollows, MaxFollowers or MaxListeners: CodeTooManyWaiters, as for Submit with
// Attach, which submits nothing then.
type FollowTask struct {
	Head
	Flow   string // of Head.Session, that waits with Attach
	Task   interlock.TaskID
	Attach bool
}

// StartRun asks for a lease on one permit of each of interlock.RunKeys that has a capacity; the
// others it claims intent-shared, which excludes no run and makes them visible. MaxWait bounds
// the wait in line; 0, or no Attach, refuses at once. The wait is also over when no caller
// listens any more (Detach, or a Poll without Attach): then nothing is admitted. Answered like
// Acquire, but a refusal for want of permits, and one after a wait, has CodeTooManyRuns, and no
// refusal is remembered under the request id: repeating a refused command asks anew, and
// repeating an admitted one returns the same run.
type StartRun struct {
	Head     `fingerprint:"30"`
	ID       [16]byte      `fingerprint:"-"` // fresh random bits: the lease's and the ticket's
	Org      string        `fingerprint:"1"`
	Workflow string        `fingerprint:"2"`
	Agent    string        `fingerprint:"3"`
	Flow     string        `fingerprint:"4"`
	Purpose  string        `fingerprint:"5"`
	Priority int           `fingerprint:"6"`
	TTL      time.Duration `fingerprint:"7"`
	MaxHold  time.Duration `fingerprint:"8"`
	MaxWait  time.Duration `fingerprint:"-"`
	Attach   bool          `fingerprint:"-"`
}

// RevertPattern sets a pattern to what an earlier revision of it said, also a dropped
// one. Revision 0 is the one before the present one. Answered by Done.
type RevertPattern struct {
	Head     `fingerprint:"31"`
	Name     string `fingerprint:"1"`
	Revision uint64 `fingerprint:"2"`
	Reason   string `fingerprint:"3,omitzero"` // for the journal
}
