package api

import (
	"encoding/json"

	"github.com/interlockdev/interlock"
)

// Changes are the reads and writes of a commit.
type Changes struct {
	// No key that is named may have been written after this version, but for additions.
	AsOf interlock.Version `json:"as_of,omitempty,string"`
	// The reads that must still be current.
	Reads []ReadRequest `json:"reads,omitempty" max:"MaxReads"`
	// No key twice.
	Writes []WriteRequest `json:"writes,omitempty" max:"MaxWrites"`
}

// CommitRequest is the body of POST /v1/commits.
type CommitRequest struct {
	Session SessionID `json:"session,omitempty"`
	// A strand of work within the session.
	Flow string `json:"flow,omitempty" max:"MaxNameBytes"`
	// A name, for a caller without a session.
	Agent string `json:"agent,omitempty" max:"MaxNameBytes"`
	// Why, for the next reader of the change.
	Note string `json:"note,omitempty" max:"MaxNoteBytes"`
	Changes
	// The leases that allow the writes; each must be held.
	Leases []LeaseID `json:"leases,omitempty" max:"MaxClaims"`
}

// ReadRequest is a read that a commit depends on: a version, or absent, or present.
type ReadRequest struct {
	Key     Key                `json:"key"`
	Version *interlock.Version `json:"version,omitempty,string"`
	// There must be nothing.
	Absent bool `json:"absent,omitempty"`
	// There must be a document, of any version.
	Present bool `json:"present,omitempty"`
}

// WriteRequest is one change: of put, text, base64, delete, merge and add exactly one.
type WriteRequest struct {
	Key Key `json:"key"`
	// The document as JSON.
	Put json.RawMessage `json:"put,omitempty"`
	// The document as text.
	Text *string `json:"text,omitempty"`
	// The document's bytes.
	Base64 *string `json:"base64,omitempty"`
	// The type of the document that is put. application/json, text/plain; charset=utf-8 or
	// application/octet-stream when left out.
	ContentType string `json:"content_type,omitempty" max:"MaxContentTypeBytes"`
	// true: the document goes.
	Delete bool `json:"delete,omitempty" enum:"true"`
	// A JSON merge patch (RFC 7396).
	Merge json.RawMessage `json:"merge,omitempty"`
	// The number to add to a counter; an absent counter is 0.
	Add *int64 `json:"add,omitempty"`
	// The sum must not be below.
	Min *int64 `json:"min,omitempty"`
	// The sum must not be above.
	Max *int64 `json:"max,omitempty"`
}

// EffectRequest is the body of POST /v1/effects.
type EffectRequest struct {
	// The claim's id, 128 random bits that the caller makes; without one the server makes it. The
	// same id again gets the claim; any other claim is refused, also in the same flow or under the same
	// lease. A caller without a session and a lease that repeats its claim under an
	// Idempotency-Key gets the claim again only with the same id.
	ID      EffectID  `json:"id,omitempty"`
	Session SessionID `json:"session,omitempty"`
	// A strand of work within the session.
	Flow string `json:"flow,omitempty" max:"MaxNameBytes"`
	// A name, for a caller without a session.
	Agent string `json:"agent,omitempty" max:"MaxNameBytes"`
	// The claim lives as long as this lease; without one as long as the session, without both for
	// ttl_ms.
	Lease LeaseID `json:"lease,omitempty"`
	// The life of a claim with neither a session nor a lease.
	TTL Milliseconds `json:"ttl_ms,omitempty" min:"MinTTL" max:"MaxEffectTTL" default:"DefaultEffectTTL"`
	// The tool that acts, such as stripe.charge.
	Tool string `json:"tool" min:"1"`
	// The target of the action, such as customer:12.
	Target string `json:"target" min:"1"`
	// The arguments that matter: without what differs between two plans of the same, such as time
	// stamps. Whole numbers beyond 2^53 and numbers of more than 15 significant digits are sent as
	// strings. Every caller in the namespace can read them: no secret belongs there.
	Arguments json.RawMessage `json:"arguments,omitempty" type:"object"`
	// The time to wait for another claimer that is performing it; at most 55000.
	Wait Milliseconds `json:"wait_ms,omitempty"`
}

// DoneRequest is the body of POST /v1/effects/{id}/done.
type DoneRequest struct {
	// The result, for another agent that plans the action again.
	Result json.RawMessage `json:"result,omitempty"`
}

// ReasonRequest is the body of POST /v1/effects/{id}/unknown and /cancel, and of POST /v1/queues/{queue}/pause, drain
// and resume.
type ReasonRequest struct {
	// The reason, for the journal.
	Reason string `json:"reason,omitempty" max:"MaxReasonBytes"`
}

// ReconcileRequest is the body of POST /v1/effects/{digest}/reconcile.
type ReconcileRequest struct {
	// Whether it was done, as was found out at the target.
	Happened bool `json:"happened"`
	// The result.
	Result json.RawMessage `json:"result,omitempty"`
	// How the outcome was found out.
	Reason string `json:"reason,omitempty" max:"MaxReasonBytes"`
}
