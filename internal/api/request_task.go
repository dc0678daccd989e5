package api

import "encoding/json"

// Work has the fields that submissions of tasks and messages share.
type Work struct {
	// The kind of work, for workers of several kinds.
	Kind string `json:"kind,omitempty" max:"MaxNameBytes"`
	// Why, for people that look on.
	Purpose string `json:"purpose,omitempty" max:"MaxPurposeBytes"`
	// Each step counts like 10 s of earlier arrival.
	Priority Priority `json:"priority,omitempty"`
	// It may not run before.
	Delay Milliseconds `json:"delay_ms,omitempty" max:"MaxDelay"`
	// If it is not done by then it is dead; 0: none.
	Deadline Milliseconds `json:"deadline_ms,omitempty" max:"MaxDelay"`
	// 0: the queue's.
	MaxAttempts int `json:"max_attempts,omitempty" min:"0" max:"MaxAttempts"`
	// The pause after the first failure is random up to this, and doubles; 0: the queue's.
	Backoff Milliseconds `json:"backoff_ms,omitempty" max:"MaxDelay"`
	// Up to this; 0: the queue's.
	MaxBackoff Milliseconds `json:"max_backoff_ms,omitempty" max:"MaxDelay"`
	// A person has to approve it before it may run.
	Ask *Question `json:"approval,omitempty"`
}

// Sender is the submitter of a task, or the sender of a message.
type Sender struct {
	// A name, for a caller without a session.
	Agent   string    `json:"agent,omitempty" max:"MaxNameBytes"`
	Session SessionID `json:"session,omitempty"`
	// A strand of work within the session.
	Flow string `json:"flow,omitempty" max:"MaxNameBytes"`
	// The time to wait within the call for its end; at most 55000.
	Wait Milliseconds `json:"wait_ms,omitempty"`
}

// Question is a question to a person: the body of POST /v1/leases/{id}/ask, and a part of a task.
type Question struct {
	// The question to the person.
	Text string `json:"question" min:"1" max:"MaxQuestionBytes"`
	// How long it stands; 0: until it is answered. Time in which the server was down does not
	// count.
	Limit Milliseconds `json:"limit_ms,omitempty" max:"MaxDelay"`
	// The answer then.
	OnLimit string `json:"on_limit,omitempty" enum:"approved,denied" default:"denied"`
	// The reads of the asker. The next attempt lists the changes since.
	Reads []ReadRequest `json:"reads,omitempty" max:"MaxReads"`
}

// TaskRequest is a task to submit.
type TaskRequest struct {
	// The queue of the workers that are to do it; an operator registers queues.
	Queue string `json:"queue" min:"1" max:"MaxNameBytes"`
	// The claims that its worker holds: modes or permits.
	Claims []ClaimRequest `json:"claims,omitempty" max:"MaxClaims"`
	// Any JSON of at most 256 KiB.
	Payload json.RawMessage `json:"payload,omitempty"`
	// The group, for the queue's shares and caps, and for permits.
	Group string `json:"group,omitempty" max:"MaxNameBytes"`
	Work
}

// SubmitRequest is the body of POST /v1/tasks.
type SubmitRequest struct {
	Sender
	TaskRequest
}

// MessageBody has the fields that messages share.
type MessageBody struct {
	// Any JSON of at most 256 KiB.
	Payload json.RawMessage `json:"body,omitempty"`
	Work
}

// MessageRequest is a message to the single writer of its key.
type MessageRequest struct {
	Key Key `json:"key"`
	MessageBody
}

// SendRequest is the body of POST /v1/mailbox/{key}.
type SendRequest struct {
	Sender
	MessageBody
}

// ChangeTaskRequest is the body of POST /v1/tasks/{id}/cancel, reschedule, replay and discard.
type ChangeTaskRequest struct {
	// For reschedule and replay: the delay until it may run; 0: at once.
	Delay  Milliseconds `json:"delay_ms,omitempty" max:"MaxDelay"`
	Reason string       `json:"reason,omitempty" max:"MaxReasonBytes"`
}

// PullRequest is the body of POST /v1/queues/{queue}/pull.
type PullRequest struct {
	// A name, for a worker without a session.
	Agent   string    `json:"agent,omitempty" max:"MaxNameBytes"`
	Session SessionID `json:"session,omitempty"`
	// The maximum of tasks.
	Max int `json:"max,omitempty" min:"1" max:"MaxPull" default:"1"`
	// The ttl of the leases; else the queue's, else as for any lease.
	TTL Milliseconds `json:"ttl_ms,omitempty" min:"MinTTL" max:"MaxTTL"`
	// The time to wait within the call for a task; at most 55000.
	Wait Milliseconds `json:"wait_ms,omitempty"`
}

// AckRequest is the body of POST /v1/leases/{id}/ack.
type AckRequest struct {
	// The result, any JSON of at most 64 KiB; for a message, the reply.
	Result json.RawMessage `json:"result,omitempty"`
	Changes
	// Submitted with it.
	Tasks []TaskRequest `json:"tasks,omitempty" max:"MaxFollowUps"`
	// Sent with it.
	Messages []MessageRequest `json:"messages,omitempty" max:"MaxFollowUps"`
	// A text for the next holder, and for readers of the writes.
	Note string `json:"note,omitempty" max:"MaxNoteBytes"`
}

// NackRequest is the body of POST /v1/leases/{id}/nack.
type NackRequest struct {
	Reason string `json:"reason,omitempty" max:"MaxReasonBytes"`
	// The time until the next attempt; 0: at once. Left out: by the task's backoff, with full jitter.
	Delay *Milliseconds `json:"delay_ms,omitempty" max:"MaxDelay"`
	// There is to be no other attempt.
	Dead bool `json:"dead,omitempty"`
}

// AnswerRequest is the body of POST /v1/approvals/{id}.
type AnswerRequest struct {
	Verdict string `json:"verdict" enum:"approved,denied"`
	// The name of the person; the credential's principal when left out.
	By     string `json:"by,omitempty" max:"MaxNameBytes"`
	Reason string `json:"reason,omitempty" max:"MaxReasonBytes"`
}

// RunRequest is the body of POST /v1/runs.
type RunRequest struct {
	// The organisation that has the cap: one segment of a key.
	Org string `json:"org" min:"1" max:"MaxKeyBytes"`
	// The workflow, likewise. Left out, only the organisation's cap counts.
	Workflow string `json:"workflow,omitempty" max:"MaxKeyBytes"`
	// The agent's name, for people and for other waiters. A session has its own.
	Agent string `json:"agent,omitempty" max:"MaxNameBytes"`
	// The session that holds the lease. Without one it lives by its own renewals.
	Session SessionID `json:"session,omitempty"`
	// A strand of work within the session.
	Flow string `json:"flow,omitempty" max:"MaxNameBytes"`
	// Shown to others that want the same key.
	Purpose  string   `json:"purpose,omitempty" max:"MaxPurposeBytes"`
	Priority Priority `json:"priority,omitempty"`
	// How long the lease outlives the last heartbeat. 0 or left out: the default of the key's pattern,
	// else 30000.
	TTL Milliseconds `json:"ttl_ms,omitempty" max:"MaxTTL"`
	// A cap that heartbeats cannot extend; none when left out or 0.
	MaxHold Milliseconds `json:"max_hold_ms,omitempty" max:"MaxMaxHold"`
	// The maximum time in line within the call, 55000 at most; 0: no wait.
	MaxWait *Milliseconds `json:"wait_ms,omitempty" default:"DefaultRunWait"`
}

// OpenSessionRequest is the body of POST /v1/sessions.
type OpenSessionRequest struct {
	// The agent's name.
	Agent string `json:"agent,omitempty" max:"MaxNameBytes"`
	// How long the session outlives its last heartbeat, and the maximum of its leases' ttl. 0 or left
	// out: 30000, and as long as the longest ttl of its leases.
	TTL Milliseconds `json:"ttl_ms,omitempty" max:"MaxTTL"`
}
