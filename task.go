package interlock

import "time"

// TaskState is the state of a task.
//
//	             ┌────────────── again later ──────────────┐
//	             ▼                                         │
//	scheduled ─► waiting ─► running ─┬─► done              │
//	    │           │          │     ├─► dead ── replay ───┤
//	    │           │          │     └─────────────────────┘
//	    │           │          └─► asking ── approved ─────┘
//	    └───────────┴─► cancelled
type TaskState uint8

const (
	// TaskScheduled means that its time has not come: it was delayed, or its last
	// attempt failed and the next one comes after a pause.
	TaskScheduled TaskState = 1 + iota
	// TaskWaiting means that it waits for its keys or for a worker. It holds nothing.
	TaskWaiting
	// TaskRunning means that a worker has it, under a lease on its claims.
	TaskRunning
	// TaskAsking means that it waits for a decision. It holds nothing.
	TaskAsking
	// TaskDone means that it was acknowledged.
	TaskDone
	// TaskDead means that it will not be tried again by itself: its last attempt
	// failed, its deadline passed, or a person said no.
	TaskDead
	// TaskCancelled means that it was taken back before it ran.
	TaskCancelled
)

// IsSettled reports whether the task is over: it is done, dead or cancelled.
func (s TaskState) IsSettled() bool { return s >= TaskDone }

var taskStateNames = [...]string{
	TaskScheduled: "scheduled", TaskWaiting: "waiting", TaskRunning: "running", TaskAsking: "asking",
	TaskDone: "done", TaskDead: "dead", TaskCancelled: "cancelled",
}

// String returns the name that the HTTP API uses.
func (s TaskState) String() string { return nameOf(taskStateNames[:], s) }

// ParseTaskState parses the text of TaskState.String.
func ParseTaskState(s string) (TaskState, bool) {
	if s == "" {
		return 0, false
	}
	return parseName[TaskState](taskStateNames[:], s)
}

// Task is work that stands in line for its keys instead of an agent that waits. It
// holds nothing until its claims can be granted and a worker of its queue is idle;
// then the worker gets it with a lease on them. Payload, Kind, Result and the texts are
// other agents'.
type Task struct {
	ID       TaskID
	Queue    string
	Kind     string // the kind, for workers that handle several kinds
	Claims   []Claim
	Payload  []byte // JSON
	Purpose  string
	Group    string // for the queue's fairness and caps
	Trace    string // W3C traceparent of the submission
	Priority int
	State    TaskState

	// Its submitter.
	Agent     string
	Session   string // public name
	Flow      string
	Principal string
	Age       time.Duration
	// Sender, with a message, is the sender that keeps its messages in order: "key:KEY" for
	// those that the writer of a key sends at its work, else "session:NAME" by its public name,
	// else "principal:NAME agent:NAME", or "principal:NAME flow:FLOW" without an agent's name,
	// or "principal:NAME" without either, else "agent:NAME". It is empty where no order is
	// kept. The server makes it, so no caller passes for a sender of another kind.
	Sender string

	Due      time.Duration // until it may run, of a scheduled one
	Deadline time.Duration // until it is dead if it is not done; 0: none

	Attempt     int // of a running one, which it is; else how many there were
	MaxAttempts int
	Attempts    []Attempt // the last of those that ended, oldest first

	Position int           // among those of its queue that wait; 0: not waiting, or not looked up
	ETA      time.Duration // expected wait
	Blocker  Key           // the key that it waits for; "" for a worker
	Barred   bool          // it waits for a worker, and none of the idle ones may hold it

	Approval *Approval
	Result   []byte        // JSON: of a done one, the worker's result; of a message, the reply
	DoneBy   string        // of a done one, the credential that acknowledged it; "" without credentials
	Settled  time.Duration // since it is done, dead or cancelled
	Reason   string        // why it is dead or cancelled, or fails again and again
}

// TaskSpec is a task as it is submitted.
type TaskSpec struct {
	Queue    string
	Kind     string
	Claims   []Claim // of modes without a count, or of Permits; the slice belongs to the receiver
	Payload  []byte  // JSON; at most MaxPayloadBytes
	Purpose  string
	Group    string        // for the queue's fairness and caps
	Trace    string        // W3C traceparent of the submitter, for spans and for the worker; "" for none
	Priority int           // from -MaxPriority to MaxPriority
	Delay    time.Duration // it may not run before
	Deadline time.Duration // from now; if it is not done by then it is dead; 0: none

	// 0 is the queue's.
	MaxAttempts int
	Backoff     time.Duration // the pause after the first failure is random, up to this
	MaxBackoff  time.Duration // up to which it doubles from failure to failure

	// Message makes it a message to the single writer of Key: Queue and Claims are left out.
	Message bool
	Key     Key

	// Ask, when it is set, requires the approval of a person before it may run.
	Ask *Question
}

// Question is a question to a person.
type Question struct {
	Text    string
	Limit   time.Duration // how long it stands; 0: until it is answered
	OnLimit Verdict       // then; 0: Denied
	// Reads are the versions on which the question rests. After the answer, the holder of the
	// task learns which of them have changed since: Task.Approval.Stale.
	Reads []Read
}

// LogEntry is one entry in the log of a key with a single writer: a message, the decision
// on it, and the resulting state. The log is append-only; entries beyond its bounds are
// forgotten from its beginning. Kind, Body, Reply and the texts are other agents'.
type LogEntry struct {
	Seq     uint64 // counts the key's entries; a log that was forgotten altogether begins again above all forgotten ones
	Message TaskID
	Kind    string
	Body    []byte // JSON
	Sender  string // as Task.Sender
	Agent   string // its sender

	State  TaskState // done, dead or cancelled
	Reply  []byte    // JSON
	Reason string    // why it is dead or cancelled

	// The worker that decided it; zero if no worker had it.
	Worker  string
	Session string // public name
	Attempt int
	Fence   Fence

	// Document is the key's state after it. Its body is left out of an entry that has not
	// changed it.
	Document Document
	Changed  bool
	Age      time.Duration
}

// Attempt is one go at a task.
type Attempt struct {
	Number  int
	Agent   string // the worker's
	Session string // public name
	Fence   Fence
	EndedBy string // "nack", or why its lease ended: "ttl", "session_expired", "stall", ...
	Reason  string // the worker's words
	Held    time.Duration
	Age     time.Duration // since it ended
}

// Approval is a question to a person, and the answer.
type Approval struct {
	Question string // the question to the person; the asker's text
	Agent    string // the asker: the worker, or the submitter of the task
	Asked    time.Duration
	Left     time.Duration // until it answers itself; 0: never
	OnLimit  Verdict       // how
	Verdict  Verdict       // 0 while it is open
	By       string        // the name that the answerer claims; ByPolicy, if its time ran out
	Reason   string
	// Principal is the credential that answered: it was authenticated, By was not. ""
	// without credentials, and if the time ran out.
	Principal string
	// Approvals are those that came before the last one, if the queue needs several. Needed is
	// how many that is, of an open question; 0 for one.
	Approvals []Endorsement
	Needed    int
	// UsedIn is the number of the attempt that has used this approval: what it was given for may have
	// been done. 0 for none, and while that attempt runs.
	UsedIn int
	// Stale are the documents that changed since the asker read them.
	Stale     []Stale
	StaleMore bool
}

// Endorsement is one of several approvals of a task.
type Endorsement struct {
	Principal string // as Approval.Principal
	By        string // as Approval.By
	Reason    string
}

// Answerer returns the name of the approver, as Approval.Answerer does.
func (x *Endorsement) Answerer() string { return Answerer(x.Principal, x.By) }

// ByPolicy is the answerer of a question that answered itself.
const ByPolicy = "policy"

// Answerer returns the answerer of a question, for a sentence: the principal, and the name that
// it claims if that differs.
func (a *Approval) Answerer() string { return Answerer(a.Principal, a.By) }

// Answerer returns the actor, for a sentence: an authenticated principal, "" for none, and the
// name that it claims if that differs.
func Answerer(principal, by string) string {
	switch {
	case principal == "" || principal == by:
		return by
	case by == "":
		return principal
	}
	return principal + ", claiming to be " + by
}

// Verdict is a person's word.
type Verdict uint8

const (
	Approved Verdict = 1 + iota
	Denied
)

var verdictNames = [...]string{Approved: "approved", Denied: "denied"}

// String returns the name that the HTTP API uses.
func (v Verdict) String() string { return nameOf(verdictNames[:], v) }

// ParseVerdict parses the text of Verdict.String.
func ParseVerdict(s string) (Verdict, bool) {
	if s == "" {
		return 0, false
	}
	return parseName[Verdict](verdictNames[:], s)
}

// TaskQueue is an operator's settings for a queue of tasks. A task names an existing one.
type TaskQueue struct {
	Name string

	Paused bool // hands nothing out
	Drain  bool // accepts no new tasks; dispatches the present ones

	// Defaults of its tasks, and of the leases under which they run.
	MaxAttempts int           // 0: DefaultAttempts
	Backoff     time.Duration // the first pause after a failure is up to this; 0: DefaultBackoff
	MaxBackoff  time.Duration // and doubles up to this; 0: DefaultMaxBackoff
	TTL         time.Duration // 0: as for any lease
	Grace       time.Duration
	MaxHold     time.Duration
	Stall       time.Duration

	MaxRunning int // tasks that run at once; 0: any number
	MaxTasks   int // tasks that are not settled; 0: MaxTasks

	// Groups share the queue out: among groups with tasks that could run, one of weight 2
	// gets two turns for each one of weight 1. A group that is not listed has weight 1.
	Groups []Share

	// Access lists: each entry is the name of a credential, GroupPrefix and the name of a
	// claimant group, or "*" (Principal.Matches). An empty list admits every principal with a
	// role that allows it.
	Pull   []string // may pull tasks, and settle them with writes
	Submit []string // may submit tasks; to the queue of a single writer, send messages
	Admin  []string // may, as operators may, pause and drain the queue and change its tasks
	// Approvers may answer questions about its tasks: each entry is the name of a credential,
	// GroupPrefix and the name of a claimant group, or "*" (Principal.Matches). An empty list
	// admits every principal with a role that allows it.
	Approvers []string
	// MinApprovals is how many principals must approve a task that asks; 0: one. One that
	// denies it is enough.
	MinApprovals int
	// Approval decides whether a replay of an approved task asks again.
	Approval ApprovalPolicy
}

// ApprovalPolicy decides what an approval is good for.
type ApprovalPolicy uint8

const (
	// ApprovalOnce has a task with a used approval ask again when it is replayed.
	ApprovalOnce ApprovalPolicy = iota
	// ApprovalReuse lets the approval stand.
	ApprovalReuse
)

var approvalPolicyNames = [...]string{ApprovalOnce: "once", ApprovalReuse: "reuse"}

// String returns the name that the HTTP API uses.
func (p ApprovalPolicy) String() string { return nameOf(approvalPolicyNames[:], p) }

// ParseApprovalPolicy parses the text of ApprovalPolicy.String.
func ParseApprovalPolicy(s string) (ApprovalPolicy, bool) {
	return parseName[ApprovalPolicy](approvalPolicyNames[:], s)
}

// Share is a group's part of a queue.
type Share struct {
	Group  string
	Weight int // 0: 1
	Max    int // of its tasks that run at once; 0: any number
}

// QueueStatus is how a queue stands.
type QueueStatus struct {
	TaskQueue
	Scheduled, Waiting, Running, Asking, Dead int
	// workers that ask for tasks; of one that handles many at a time, its pulls
	Idle   int
	Oldest time.Duration // how long the first has waited
}

// Assignment is a task in a worker's hands.
type Assignment struct {
	Task  Task
	Lease Lease // with the last notes
	// Documents are the state of the claimed keys, absent ones among them. One answer has
	// bodies of at most MaxReadBytes; the documents that do not fit have their
	// sizes alone.
	Documents []Document
	AsOf      Version
}
