package api

import "github.com/interlockdev/interlock"

// AcquireRequest is the body of POST /v1/leases.
//
//schema:one claims,any_prefix
type AcquireRequest struct {
	// The agent's name, for people and for other waiters. A session has its own.
	Agent string `json:"agent,omitempty" max:"MaxNameBytes"`
	// The session that holds the lease. Without one the lease lives by its own renewals, no
	// repeated acquire finds it, and deadlock is not seen.
	Session SessionID `json:"session,omitempty"`
	// A thread of control inside the session.
	Flow string `json:"flow,omitempty" max:"MaxNameBytes" default:"main"`
	// Shown to others that want the same key.
	Purpose string `json:"purpose,omitempty" max:"MaxPurposeBytes"`
	// Granted as a whole or not at all: 64 at most, or 1,024 with any.
	Claims []ClaimRequest `json:"claims,omitempty" min:"1" max:"MaxAlternatives"`
	// The claims are alternatives: exactly one of them is granted, the first that is free or
	// becomes free.
	Any bool `json:"any,omitempty"`
	// Instead of claims: any one of the keys that patterns list as members and that begin so,
	// such as gpu:. It is claimed as a claim without a mode.
	Prefix string `json:"any_prefix,omitempty" max:"MaxKeyBytes"`
	// The claimant group that permits are taken for.
	Group string `json:"group,omitempty" max:"MaxNameBytes"`
	// How the parts of a key are assigned to its members, for a claim with parts. The first member
	// decides.
	Division string `json:"divide,omitempty" enum:"hash,range,load" default:"hash"`
	// How long the lease outlives the last heartbeat. Without a ttl of its own a lease has the pattern's,
	// else its session's, else 30 s, and never more than its session was opened with. As with all durations
	// but grace_ms, 0 is as good as none.
	TTL Milliseconds `json:"ttl_ms,omitempty" max:"MaxTTL"`
	// The time after the hard end in which the holder may still commit and release; 5000 if left out.
	Grace *Milliseconds `json:"grace_ms,omitempty" max:"MaxGrace"`
	// A cap that heartbeats cannot extend; none when left out or 0.
	MaxHold Milliseconds `json:"max_hold_ms,omitempty" max:"MaxMaxHold"`
	// The lease ends when no progress was reported for so long; never when left out or 0.
	Stall Milliseconds `json:"stall_ms,omitempty" max:"MaxStall"`
	// How long the keys stay closed if the holder dies; 0 if left out.
	LockDelay Milliseconds `json:"lock_delay_ms,omitempty" max:"MaxLockDelay"`
	// The maximum time in line; for ever if left out or 0.
	MaxWait  Milliseconds `json:"max_wait_ms,omitempty" max:"MaxMaxWait"`
	Priority Priority     `json:"priority,omitempty"`
	// A bound for the queue position: a request that would wait further back is refused with held.
	// None when left out or 0, and for parties of a barrier, which wait for each other.
	MaxPosition int `json:"max_position,omitempty" min:"0" max:"MaxWaitersPerKey"`
	// The version of the namespace's state that the caller has read at the keys: the answer lists
	// what was committed since. As of the request's arrival when left out.
	AsOf interlock.Version `json:"as_of,omitempty,string"`
	// Return the documents at the keys with the lease, read in the step that hands it over: in the
	// answer, with the ticket, a repetition, a resumption, a conversion, and by getLease.
	Documents bool `json:"documents,omitempty"`
	// The session of the process before, if this one was started in its place: a lease with the same claims
	// that it still holds becomes this session's at once, under a new fence and on its old terms.
	TakeOver SessionID `json:"take_over,omitempty"`
	// How long to wait within the call, 55000 at most. 0 with on_conflict wait: stand in line and
	// answer at once.
	Wait *Milliseconds `json:"wait_ms,omitempty"`
	// The behaviour if the request cannot be granted at once. wait if wait_ms is present, else
	// fail. preempt waits, and asks the holders to yield.
	OnConflict string `json:"on_conflict,omitempty" enum:"wait,fail,skip,preempt"`
}

// ClaimRequest is one key with a mode.
type ClaimRequest struct {
	Key Key `json:"key"`
	// If left out, one permit of a key with a capacity or a rate, else exclusive. A claim has a mode, or
	// one of permits, parties and parts.
	Mode Mode `json:"mode,omitempty"`
	Count
}

// Count is the number of a claim with a count.
type Count struct {
	// The number of permits of a key with a capacity, or of tokens of a key with a rate.
	Permits uint32 `json:"permits,omitempty" min:"1" max:"MaxCount"`
	// The number of parties of the barrier.
	Parties uint32 `json:"parties,omitempty" min:"1" max:"MaxParties"`
	// The number of parts of the key.
	Parts uint32 `json:"parts,omitempty" min:"1" max:"MaxParts"`
}

// RenewRequest is the body of POST /v1/leases/{id}/renew.
type RenewRequest struct {
	Progress Progress `json:"progress,omitempty"`
	// The ttl of the lease from this renewal on, within the limits of its keys' patterns and of a ttl
	// that its session was opened with. Unchanged when left out or 0.
	TTL Milliseconds `json:"ttl_ms,omitempty" max:"MaxTTL"`
}

// HeartbeatRequest is the body of POST /v1/sessions/{id}/heartbeat.
type HeartbeatRequest struct {
	Progress Progress `json:"progress,omitempty"`
	// The held leases that the client knows of; left out: all of the session. A lease that a list leaves out is not
	// renewed: it ends by its own ttl unless a later list has it.
	Known *KnownLeases `json:"known,omitempty"`
}

// KnownLeases tells which held leases of its session a client knows of: by number and digest, or by a list. Parked
// leases and parts of a partitioned key do not count.
type KnownLeases struct {
	Count int `json:"count,omitempty" min:"0" max:"MaxKnown"`
	// The exclusive or of the 16 bytes of each lease id, as 32 hexadecimal digits.
	Digest string `json:"digest,omitempty"`
	// All of them, in place of count and digest.
	Leases []LeaseID `json:"leases,omitempty" max:"MaxKnown"`
}

// ReleaseRequest is the body of POST /v1/leases/{id}/release.
type ReleaseRequest struct {
	// The outcome, in the holder's words.
	Outcome string `json:"outcome,omitempty" max:"MaxNameBytes"`
	// Handed to the next holders of the keys.
	Note string `json:"note,omitempty" max:"MaxNoteBytes"`
}

// ConvertRequest is the body of POST /v1/leases/{id}/convert.
type ConvertRequest struct {
	// All that the lease claims afterwards.
	Claims []ClaimRequest `json:"claims" min:"1" max:"MaxClaims"`
	// How long to wait within the call, 55000 at most. 0 with on_conflict wait: stand in line and
	// answer at once.
	Wait *Milliseconds `json:"wait_ms,omitempty"`
	// wait when wait_ms is present, else fail.
	OnConflict string `json:"on_conflict,omitempty" enum:"wait,fail,preempt"`
	// The maximum time in line; for ever if left out or 0.
	MaxWait Milliseconds `json:"max_wait_ms,omitempty" max:"MaxMaxWait"`
}

// ArriveRequest is the body of POST /v1/leases/{id}/arrive.
type ArriveRequest struct {
	// How long to wait within the call, 55000 at most. 0: stand in line and answer at once.
	Wait Milliseconds `json:"wait_ms,omitempty"`
	// The maximum time in line; for ever if left out or 0.
	MaxWait Milliseconds `json:"max_wait_ms,omitempty" max:"MaxMaxWait"`
}

// ParkRequest is the body of POST /v1/leases/{id}/park.
type ParkRequest struct {
	// keep: no other holder gets the keys. free: others may have them meanwhile. The pattern
	// decides when left out, else keep.
	Keys string `json:"keys,omitempty" enum:"keep,free"`
	// How long it may be parked; the pattern decides when left out or 0, else 24 hours. Then it
	// ends.
	For Milliseconds `json:"for_ms,omitempty" max:"MaxPark"`
	// The question to a person: the lease is then among the approvals, and the answer resumes it.
	Reason string `json:"reason,omitempty" max:"MaxReasonBytes"`
}

// ResumeRequest is the body of POST /v1/leases/{id}/resume.
type ResumeRequest struct {
	// The session that holds it from now on; without one it lives by its own renewals.
	Session SessionID `json:"session,omitempty"`
	// A thread of control inside the session.
	Flow string `json:"flow,omitempty" max:"MaxNameBytes" default:"main"`
	// How long to wait within the call, 55000 at most, also for a person's answer. 0 with
	// on_conflict wait: stand in line and answer at once.
	Wait *Milliseconds `json:"wait_ms,omitempty"`
	// wait when wait_ms is present, else fail.
	OnConflict string `json:"on_conflict,omitempty" enum:"wait,fail,preempt"`
	// The maximum time in line; for ever if left out or 0.
	MaxWait Milliseconds `json:"max_wait_ms,omitempty" max:"MaxMaxWait"`
	// Resume it although its question is open, which withdraws the question, or was denied.
	Unapproved bool `json:"unapproved,omitempty"`
}

// DeclareRequest is the body of POST /v1/waits.
type DeclareRequest struct {
	// The session that waits. Without one no deadlock is seen.
	Session SessionID `json:"session,omitempty"`
	// A thread of control inside the session.
	Flow string `json:"flow,omitempty" max:"MaxNameBytes" default:"main"`
	// The agent's name, for people and for other waiters. A session has its own.
	Agent string `json:"agent,omitempty" max:"MaxNameBytes"`
	// The target of the wait.
	Purpose string `json:"purpose,omitempty" max:"MaxPurposeBytes"`
	// The session or the agent that the wait is for.
	On PartyRequest `json:"on"`
	// That session or agent works under a lease of this flow. A wait of its own for that lease, also
	// through others, then ends as a deadlock, and this one does not.
	Encloses bool `json:"encloses,omitempty"`
	// How long to wait within the call, 55000 at most. 0: stand in line and answer at once.
	Wait Milliseconds `json:"wait_ms,omitempty"`
	// The maximum time in line; for ever if left out or 0.
	MaxWait Milliseconds `json:"max_wait_ms,omitempty" max:"MaxMaxWait"`
}

// PartyRequest is a session or an agent that another one waits for.
type PartyRequest struct {
	// Public short name of the session.
	Session string `json:"session,omitempty"`
	// Its flow.
	Flow string `json:"flow,omitempty" default:"main"`
	// The agent's name, if it has one session only.
	Agent string `json:"agent,omitempty"`
}
