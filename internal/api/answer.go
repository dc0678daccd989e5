package api

import "github.com/interlockdev/interlock"

// Done is the answer to a call that was carried out.
type Done struct {
	// The outcome.
	Outcome Outcome `json:"outcome"`
	Stamp
}

// Advice is the recommended next step.
type Advice struct {
	// The next step.
	Action Action `json:"action"`
	// When to come back; 0 when there is no such time.
	RetryAfter Milliseconds `json:"retry_after_ms"`
	// The next step in words, for an agent or a person; where an answer has no detail, also the situation.
	Message string `json:"message" text:"line"`
}

// ProblemDocument is a refusal (RFC 9457).
//
//schema:name Problem
type ProblemDocument struct {
	// The description of the code.
	Type   URI    `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status" min:"400" max:"599"`
	Code   Code   `json:"code"`
	// What is wrong in this instance: the holder, and since when. The next step is in advice.
	Detail string `json:"detail" text:"line"`
	// Whether asking again can succeed without anybody changing the request.
	Retryable bool   `json:"retryable"`
	Advice    Advice `json:"advice"`
	// The key that it is about; not always a valid one.
	Key          string       `json:"key,omitempty" text:"line"`
	ConflictKind ConflictKind `json:"conflict_kind,omitempty"`
	Capacity     *Capacity    `json:"capacity,omitempty"`
	// For unmatched_key: the patterns and keys with the most similar spelling.
	Nearest []string `json:"nearest,omitempty" text:"line"`
	// The holders that block the request. If only earlier waiters block it: those that block the
	// first of them.
	Holders []Holder `json:"holders,omitempty"`
	// Holders not shown.
	More int   `json:"more_holders,omitempty" min:"1"`
	Line *Line `json:"line,omitempty"`
	// The cycle of a deadlock.
	Cycle []CycleStep `json:"cycle,omitempty"`
	// Why a lease or ticket is gone.
	EndedBy string `json:"ended_by,omitempty" text:"line"`
	// For stale: the changes since the read.
	Packet *Packet `json:"packet,omitempty"`
	// The effect, for effect_claimed, effect_unknown and effect_done.
	Effect *Effect `json:"effect,omitempty"`
	// The present task, for task_moved, task_settled and already_replied.
	Task *Task `json:"task,omitempty"`
	// For unknown_document: the version since which the document is absent.
	Version interlock.Version `json:"version,omitempty,string"`
	// For unknown_document: the version of the namespace's state.
	AsOf interlock.Version `json:"as_of,omitempty,string"`
	// For not_owner: the server to ask, as far as this one knows.
	Active *ActiveServer `json:"active,omitempty"`
	Stamp
}

// ActiveServer is the server that owns the shard.
type ActiveServer struct {
	// Its URL.
	HTTP string `json:"http" text:"line"`
	// The address of its session streams.
	GRPC string `json:"grpc" text:"line"`
}

// Status is the answer of /healthz and /readyz.
type Status struct {
	Status string `json:"status" enum:"ok"`
	// active: this server owns the shard; standby: it waits until the active one is gone.
	Role string `json:"role" enum:"active,standby"`
	Stamp
}

// KeepAlive is a line sent every 15 s while a followed stream is quiet.
type KeepAlive struct {
	Event string `json:"event" enum:"keep_alive"`
	// How far the journal was looked through.
	Index interlock.Index `json:"index,string"`
}

// StreamEnd is the last line when the server ends the stream before it is whole, or because it ends
// itself: the code is the reason. An answer that should have ended at the newest event is broken
// off after it.
type StreamEnd struct {
	Event  string `json:"event" enum:"end"`
	Code   Code   `json:"code"`
	Detail string `json:"detail" text:"line"`
	// Connect again.
	Retryable bool   `json:"retryable"`
	Advice    Advice `json:"advice"`
}
