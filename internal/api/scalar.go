package api

import (
	"encoding/json"
	"time"

	"github.com/interlockdev/interlock"
)

// The values that fields of bodies and answers have in common. Each is an alias: it names a
// schema of the API's description, and is an ordinary value to a Go program. A directive
// //schema:NAME VALUE adds a member to the schema.

// Milliseconds is a duration in milliseconds.
//
//schema:unit ms
//schema:min 0
type Milliseconds = int64

// Key is a path with '/' between its segments, such as repo:web/src/auth.ts: at most 512 bytes
// and 16 segments, in Unicode normal form C.
//
//schema:min 1
//schema:max MaxKeyBytes
type Key = interlock.Key

// Mode is the access that a claim wants to its key. permits, barrier and member come with a
// count: permits, parties or parts.
//
//schema:enum exclusive,shared,intent-exclusive,intent-shared,shared+intent-exclusive,permits,barrier,member
type Mode = string

// LeaseID is the lease's id: its holder's secret.
//
//schema:pattern ^l_[0-9a-f]{32}$
type LeaseID = string

// TicketID is the ticket's id: its waiter's secret. It differs from the lease's id in its prefix
// only.
//
//schema:pattern ^t_[0-9a-f]{32}$
type TicketID = string

// SessionID is the session's id: its owner's secret.
//
//schema:pattern ^s_[0-9a-f]{32}$
type SessionID = string

// Decimal is a counter as a decimal string, because JSON numbers lose precision above 2^53.
//
//schema:pattern ^(0|[1-9][0-9]*)$
type Decimal = string

// Progress is how far the work is, shown to waiters: a text, or an object, which is kept as its
// text. 512 bytes at most.
//
//schema:type string,object
type Progress = json.RawMessage

// Priority is how urgent a request is. Each step counts as 10 s of waiting.
//
//schema:min -MaxPriority
//schema:max MaxPriority
type Priority = int

// EffectID is the claimed effect's id: its claimer's secret.
//
//schema:pattern ^e_[0-9a-f]{32}$
type EffectID = string

// TaskID is the task's id. It is no secret within the namespace.
//
//schema:pattern ^q_[0-9a-f]{32}$
type TaskID = string

// QuestionID is the name of a question: the id of its task, or the fence of its parked lease.
//
//schema:pattern ^(q_[0-9a-f]{32}|0|[1-9][0-9]*)$
type QuestionID = string

// Time is a moment as RFC 3339 writes it, in UTC. For people and logs.
//
//schema:format date-time
type Time = time.Time

// Code is a reason for refusal. The list is closed and append-only; docs/errors.md explains each.
//
//schema:constants Code
type Code = interlock.Code

// Action is a recommended next step.
//
//schema:constants Action
type Action = interlock.Action

// ConflictKind is where the conflict lies. ancestor and descendant: where the holder stands, seen
// from the requested key, or the line in which others go first; barrier: other parties are missing.
//
//schema:constants ConflictKind
type ConflictKind = interlock.ConflictKind

// LeaseState is the tier of a lease's life.
//
//schema:enum held,soft,grace,ended,parked
type LeaseState = string

// Liveness is how a holder is doing, from its heartbeats.
//
//schema:enum live,suspect,soft,grace,offered,parked,closed
type Liveness = string

// Change is what became of a thing between two states: it has come, has gone, or is another one.
//
//schema:enum new,gone,changed
type Change = string

// KeyState is the state of a key. free: neither held nor waited for.
//
//schema:enum free,held,waiting
type KeyState = string

// TaskState is where a task stands: scheduled (its time has not come), waiting (for its keys or a
// worker), running, asking (a person), done, dead (it will not be tried again by itself),
// cancelled.
//
//schema:enum scheduled,waiting,running,asking,done,dead,cancelled
type TaskState = string

// EffectState is where an effect stands. free: it was found not done.
//
//schema:enum claimed,done,unknown,free
type EffectState = string

// Verdict is a person's answer.
//
//schema:enum approved,denied
type Verdict = string

// WriteOp is how a document was written.
//
//schema:enum put,delete,merge,add
type WriteOp = string

// Digest is the SHA-256 of a canonical action.
//
//schema:pattern ^[0-9a-f]{64}$
type Digest = string

// FilePath is a path below the shared directory.
//
//schema:min 1
//schema:max 1024
type FilePath = string

// FileVersion is the SHA-256 of a file's content, or none where there is no file.
//
//schema:pattern ^([0-9a-f]{12,64}|none)$
type FileVersion = string

// AnyVersion is the version of a document, which is decimal, or of a file, which is the hash of its
// content or none.
//
//schema:pattern ^(0|[1-9][0-9]*|[0-9a-f]{12,64}|none)$
type AnyVersion = string

// JournalPosition is the index of the newest durable entry, a colon, and a SHA-256 of everything up
// to it.
//
//schema:pattern ^[0-9]+:[0-9a-f]{64}$
type JournalPosition = string

// PatchOperation is an operation of a JSON patch (RFC 6902).
//
//schema:type object
type PatchOperation = json.RawMessage

// URI is an address.
//
//schema:format uri
type URI = string

// Outcome is the outcome of a request.
//
//schema:enum released,ended,left,closed,revoked,valid,set,reverted,deleted,paused
//schema:enum draining,resumed,taken_back,added,asked
type Outcome = string

// TaskOutcome is the outcome of a request about a task, or of the question about it.
//
//schema:enum submitted,done,cancelled,rescheduled,replayed,discarded,nacked,asking
//schema:enum counted,approved,denied
type TaskOutcome = string

// EventKind is the kind of an event.
//
//schema:enum opened,session_opened,session_ended,queued,granted,admitted,claimed,grace
//schema:enum ended,left,converted,ttl_changed,yield_requested,closed,parked,resumed,decided
//schema:enum pattern_set,pattern_dropped,configured,written,effect,queue_set
//schema:enum queue_dropped,task_submitted,task_dispatched,task_attempt_failed,task_moved
//schema:enum task_forgotten,approval_requested,approval_decided,effects_forgotten
//schema:enum namespace_deleted,namespace_forgotten,namespace_moved,refused
//schema:enum webhook_set,webhook_deleted,webhook_rotated,webhook_delivered
type EventKind = string

// EndReason is why something ended.
//
//schema:enum released,ttl,max_hold,stall,revoked,session_closed,session_expired,lapsed
//schema:enum left,deadlock,wait_limit,preempted,barrier_broken,converted,lease_ended
//schema:enum park_limit,target_ended,pattern_changed,nack,too_many_runs,question,forgotten,taken_over
type EndReason = string

// AuditedOperation is a refused operation.
//
//schema:enum acquire,convert,start_run,commit,ack_task,submit_task,check_fence,revoke
type AuditedOperation = string
