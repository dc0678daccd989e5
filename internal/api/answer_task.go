package api

import (
	"encoding/json"

	"github.com/interlockdev/interlock"
)

// Task is work that stands in line for its keys instead of an agent that waits. Of one that is
// settled and forgotten only the id is known.
type Task struct {
	ID    TaskID `json:"id"`
	Queue string `json:"queue,omitempty"`
	// Another agent's text.
	Kind   string  `json:"kind,omitempty" text:"line"`
	Claims []Claim `json:"claims,omitempty"`
	// Another agent's JSON.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Another agent's text.
	Purpose string `json:"purpose,omitempty" text:"line"`
	Group   string `json:"group,omitempty" text:"line"`
	// W3C traceparent of the submission, for the worker to go on with.
	Trace    string    `json:"trace,omitempty" text:"line"`
	Priority int       `json:"priority,omitempty"`
	State    TaskState `json:"state,omitempty"`
	// The submitter; another agent's text.
	Agent string `json:"agent,omitempty" text:"line"`
	// Its public name.
	Session string `json:"session,omitempty" text:"line"`
	Flow    string `json:"flow,omitempty" text:"line"`
	// The credential.
	Principal string `json:"principal,omitempty" text:"line"`
	// Of a message: the sender, for the order of messages. `key:KEY` for those that the writer of a
	// key sends at its work, else `session:NAME`, else `principal:NAME agent:NAME`, `principal:NAME
	// flow:FLOW` or `principal:NAME`, else `agent:NAME`.
	Sender string `json:"sender,omitempty" text:"line"`
	// The time since it was submitted.
	Age Milliseconds `json:"age_ms,omitempty"`
	// The time until it may run.
	Due Milliseconds `json:"due_in_ms,omitempty"`
	// The time until it is dead if it is not done.
	Deadline Milliseconds `json:"deadline_in_ms,omitempty"`
	// The number of the running attempt; else the number of attempts that count.
	Attempt     int `json:"attempt,omitempty" min:"0"`
	MaxAttempts int `json:"max_attempts,omitempty" min:"1"`
	// The last of those that ended, oldest first.
	Attempts []Attempt `json:"attempts,omitempty" max:"16"`
	// In line for blocker.
	Position int `json:"position,omitempty" min:"1"`
	// The expected wait.
	ETA Milliseconds `json:"eta_ms,omitempty"`
	// The key that it waits for; left out when it waits for a worker.
	Blocker Key `json:"blocker,omitempty"`
	// It could run, and none of the idle workers may hold it: a pattern or its group keeps their
	// credentials from it.
	Barred   bool      `json:"barred,omitempty"`
	Approval *Approval `json:"approval,omitempty"`
	// The result: its worker's JSON.
	Result json.RawMessage `json:"result,omitempty"`
	// The credential of the worker that finished it.
	DoneBy string `json:"done_by,omitempty" text:"line"`
	// The time since it is done, dead or cancelled.
	Settled Milliseconds `json:"settled_ms,omitempty"`
	// Why it is dead or cancelled, or fails; another agent's text.
	Reason string `json:"reason,omitempty" text:"line"`
}

// Approval is a question to a person, and the answer.
type Approval struct {
	// The question to the person; another agent's text.
	Question string `json:"question" text:"lines"`
	// The asker: the worker, or the submitter of the task; its own text.
	Agent string `json:"agent" text:"line"`
	// The time since it was asked.
	Asked Milliseconds `json:"asked_ms"`
	// The time until the default answer applies.
	Left Milliseconds `json:"left_ms,omitempty"`
	// How.
	OnLimit Verdict `json:"on_limit,omitempty"`
	// Approvals that the queue needs, if more than one. Left out once it is answered.
	Needed int `json:"needed,omitempty" min:"2"`
	// Approvals before the last one, of a queue that needs several.
	Approvals []EarlierApproval `json:"approvals,omitempty"`
	// The answer; left out while the question is open.
	Verdict Verdict `json:"verdict,omitempty"`
	// The name that the answerer claims; policy, if no answer came in time.
	By string `json:"by,omitempty" text:"line"`
	// The credential that answered, authenticated by the server. Left out without credentials, and
	// if no answer came in time.
	Principal string `json:"principal,omitempty" text:"line"`
	Reason    string `json:"reason,omitempty" text:"line"`
	// The attempt that has used this approval: what it was given for may have been done. Left out while
	// that attempt runs.
	UsedIn int `json:"used_in,omitempty" min:"1"`
	// The changes since the asker's reads.
	Packet *Packet `json:"packet,omitempty"`
}

// EarlierApproval is one of several approvals that a queue needs.
type EarlierApproval struct {
	// The name that the approver claims.
	By string `json:"by" text:"line"`
	// Its credential.
	Principal string `json:"principal,omitempty" text:"line"`
	Reason    string `json:"reason,omitempty" text:"line"`
}

// LeaseQuestion is a question to a person about a parked lease.
type LeaseQuestion struct {
	Kind string `json:"kind" enum:"lease"`
	// That the lease had when it was parked: its name among the approvals.
	Fence    interlock.Fence `json:"fence,string"`
	Question string          `json:"question" text:"line"`
	// The asker, as it calls itself.
	Agent string `json:"agent" text:"line"`
	// The credential that parked the lease. Left out without credentials.
	Principal string  `json:"principal,omitempty" text:"line"`
	Purpose   string  `json:"purpose" text:"line"`
	Claims    []Claim `json:"claims"`
	// The time since it was parked.
	Asked Milliseconds `json:"asked_ms"`
	// The time until the parking ends, and the lease with it.
	Left     Milliseconds `json:"left_ms"`
	Keys     string       `json:"keys" enum:"kept,freed"`
	Decision *Decision    `json:"decision,omitempty"`
}

// LeaseDecision is the answer to a person's decision about a parked lease.
type LeaseDecision struct {
	Outcome Verdict `json:"outcome"`
	// Left out if the answer is repeated when the lease is not parked any more.
	Lease *LeaseQuestion `json:"lease,omitempty"`
	// Without credentials: an approval is a courtesy.
	Warnings []string `json:"warnings,omitempty" text:"line"`
	Stamp
}

// ApprovalList is the answer of GET /v1/approvals.
type ApprovalList struct {
	Tasks []Task `json:"tasks"`
	// On the first page: leases that are parked with a question, the oldest first, at most limit.
	Leases []LeaseQuestion `json:"leases,omitempty"`
	// There are more such leases than limit.
	MoreLeases bool `json:"more_leases,omitempty"`
	// Give it to the next call for the next page; left out on the last one.
	Cursor string `json:"cursor,omitempty"`
	Stamp
}

// TaskAnswer is the answer to a call that submitted or changed a task.
type TaskAnswer struct {
	Outcome TaskOutcome `json:"outcome"`
	Task    Task        `json:"task"`
	// Warnings about the request: a key that is spelled almost like another.
	Warnings []string `json:"warnings,omitempty" text:"line"`
	Advice   *Advice  `json:"advice,omitempty"`
	Stamp
}

// TaskView is the answer of GET /v1/tasks/{id}.
type TaskView struct {
	Task   Task    `json:"task"`
	Advice *Advice `json:"advice,omitempty"`
	Stamp
}

// TaskList is the answer of GET /v1/tasks.
type TaskList struct {
	Tasks []Task `json:"tasks"`
	// Give it to the next call for the next page; left out on the last one.
	Cursor string `json:"cursor,omitempty"`
	Stamp
}

// Assignment is a task in a worker's hands.
type Assignment struct {
	Task  Task  `json:"task"`
	Lease Lease `json:"lease"`
	// Another holder that may write had a claimed key while the task waited.
	Changed bool `json:"changed"`
	// Oldest first.
	Notes []Note `json:"notes"`
	// The state of the claimed keys, in the order of the claims: one that was never written is
	// absent, with the version that a commit that creates it names as read. One answer has at most
	// 4 MiB of values: the documents that do not fit are truncated, and are read at `/v1/state`.
	Documents []Document `json:"documents"`
	// The version of the namespace's state.
	AsOf interlock.Version `json:"as_of,string"`
}

// Pulled is the answer of POST /v1/queues/{queue}/pull.
type Pulled struct {
	Outcome string       `json:"outcome" enum:"granted,empty"`
	Tasks   []Assignment `json:"tasks" max:"64"`
	Stamp
}

// Acknowledged is the answer of POST /v1/leases/{id}/ack.
type Acknowledged struct {
	Outcome string `json:"outcome" enum:"done"`
	Task    Task   `json:"task"`
	// The version of the commit; 0 if nothing was written.
	Version interlock.Version `json:"version,string"`
	// The written documents; for counters with the sum.
	Documents []Document `json:"documents"`
	// Warnings about the request: a key that is spelled almost like another.
	Warnings []string `json:"warnings,omitempty" text:"line"`
	Advice   *Advice  `json:"advice,omitempty"`
	Stamp
}

// QueueView is the answer of GET /v1/queues/{queue}.
type QueueView struct {
	Queue QueueStatus `json:"queue"`
	Stamp
}

// QueueList is the answer of GET /v1/queues.
type QueueList struct {
	Queues []QueueStatus `json:"queues"`
	Stamp
}

// Sent is the answer of POST /v1/mailbox/{key}.
type Sent struct {
	Outcome string `json:"outcome" enum:"sent,replied"`
	Message Task   `json:"message"`
	// The writer's reply: any JSON.
	Reply json.RawMessage `json:"reply,omitempty"`
	// Warnings about the request: a key that is spelled almost like another.
	Warnings []string `json:"warnings,omitempty" text:"line"`
	Advice   *Advice  `json:"advice,omitempty"`
	Stamp
}

// Log is the answer of GET /v1/mailbox/{key}/log.
type Log struct {
	Entries []LogEntry `json:"entries"`
	// The oldest that is kept.
	First uint64 `json:"first,string"`
	// The number of the next entry, for the next request.
	Next uint64 `json:"next,string"`
	Stamp
}

// LogEntry is a message, the decision on it, and the resulting state.
type LogEntry struct {
	// Counts the key's entries from 1.
	Seq     uint64 `json:"seq,string"`
	Message TaskID `json:"message"`
	// Another agent's text.
	Kind string `json:"kind,omitempty" text:"line"`
	// Another agent's JSON.
	Body json.RawMessage `json:"body,omitempty"`
	// As Task.sender: the sender, for the order of messages.
	Sender string `json:"sender,omitempty" text:"line"`
	// The sender's name.
	Agent string `json:"agent,omitempty" text:"line"`
	State string `json:"state" enum:"done,dead,cancelled"`
	// Its writer's JSON.
	Reply json.RawMessage `json:"reply,omitempty"`
	// Why it is dead or cancelled.
	Reason string `json:"reason,omitempty" text:"line"`
	// The worker that decided it; left out if no worker had it.
	Worker string `json:"worker,omitempty" text:"line"`
	// Its public name.
	Session string          `json:"session,omitempty" text:"line"`
	Attempt int             `json:"attempt,omitempty" min:"1"`
	Fence   interlock.Fence `json:"fence,omitempty,string"`
	// The key's state after it; with its body if the message changed it.
	Document Document `json:"document"`
	// The message changed it.
	Changed bool         `json:"changed"`
	Age     Milliseconds `json:"age_ms"`
}
