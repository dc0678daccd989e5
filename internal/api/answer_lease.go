package api

import "github.com/interlockdev/interlock"

// Granted is the answer to a request that has its lease.
type Granted struct {
	Outcome string `json:"outcome" enum:"granted"`
	Lease   Lease  `json:"lease"`
	// Another holder that may write had a claimed key while this request waited: read again.
	Changed bool `json:"changed"`
	// The same holder already had all of it, and this is that lease.
	Reused bool `json:"reused"`
	// Oldest first.
	Notes []Note `json:"notes"`
	// The commits at the claimed keys since as_of, or while the request waited.
	Packet *Packet `json:"packet,omitempty"`
	// If they were asked for: the documents at the claimed keys, in the order of the claims and
	// absent ones among them, then those below keys claimed in a mode that covers the keys below,
	// in the order of the keys.
	Documents []Document `json:"documents,omitempty" max:"64"`
	// The version of the namespace's state that the documents are of.
	AsOf interlock.Version `json:"as_of,omitempty,string"`
	// Not all documents below the claimed keys are there: list them by their prefix.
	DocumentsMore bool `json:"documents_more,omitempty"`
	// Warnings about the request: a key that is spelled almost like another.
	Warnings []string `json:"warnings,omitempty" text:"line"`
	Advice   *Advice  `json:"advice,omitempty"`
	Stamp
}

// Queued is the answer to a request that waits in line.
type Queued struct {
	Outcome string `json:"outcome" enum:"queued"`
	Ticket  Ticket `json:"ticket"`
	// The first of the keys that is not free.
	Key          Key          `json:"key,omitempty"`
	ConflictKind ConflictKind `json:"conflict_kind,omitempty"`
	Capacity     *Capacity    `json:"capacity,omitempty"`
	// The holders that block the request. If only earlier waiters block it: those that block the
	// first of them.
	Holders []Holder `json:"holders"`
	// Holders not shown.
	More int `json:"more_holders,omitempty" min:"1"`
	// Warnings about the request: a key that is spelled almost like another.
	Warnings []string `json:"warnings,omitempty" text:"line"`
	Advice   Advice   `json:"advice"`
	Stamp
}

// Skipped is the answer to a request with on_conflict skip that could not be granted at once.
type Skipped struct {
	Outcome      string       `json:"outcome" enum:"skipped"`
	Key          Key          `json:"key"`
	ConflictKind ConflictKind `json:"conflict_kind"`
	Capacity     *Capacity    `json:"capacity,omitempty"`
	// The holders that block the request. If only earlier waiters block it: those that block the
	// first of them.
	Holders []Holder `json:"holders"`
	// Holders not shown.
	More int `json:"more_holders,omitempty" min:"1"`
	// Warnings about the request: a key that is spelled almost like another.
	Warnings []string `json:"warnings,omitempty" text:"line"`
	Advice   Advice   `json:"advice"`
	Stamp
}

// Parked is the answer of POST /v1/leases/{id}/park.
type Parked struct {
	Outcome string `json:"outcome" enum:"parked"`
	Lease   Lease  `json:"lease"`
	Advice  Advice `json:"advice"`
	Stamp
}

// Line is the line of a key, for a caller that is not in it.
type Line struct {
	// Waiters in line.
	Length int `json:"length" min:"0"`
	// Expected wait of a newcomer.
	ETA Milliseconds `json:"eta_ms"`
}

// Capacity is how full a key with permits or tokens is.
type Capacity struct {
	// The number of permits of the key.
	Permits int `json:"permits,omitempty" min:"1"`
	// May be more than permits after those were made fewer.
	Used int `json:"used,omitempty" min:"0"`
	// The permits of each claimant group in the pattern.
	Groups []GroupUse `json:"groups,omitempty"`
	// The maximum of tokens.
	Tokens int `json:"tokens,omitempty" min:"1"`
	// Tokens that there are now.
	Available int `json:"available,omitempty" min:"0"`
	// The time until the next token.
	Refill Milliseconds `json:"refill_ms,omitempty"`
}

// GroupUse is a claimant group's use of the permits.
type GroupUse struct {
	// Empty: claims without a group.
	Name string `json:"name" text:"line"`
	Used int    `json:"used" min:"0"`
	// The number of permits kept free for the group.
	Min int `json:"min" min:"0"`
	// The maximum of permits for the group; left out if only the capacity bounds it.
	Max int `json:"max,omitempty" min:"1"`
}

// SessionView is the answer of POST /v1/sessions.
type SessionView struct {
	Session Session `json:"session"`
	Stamp
}

// SessionWork is the answer of GET /v1/sessions/{id}: a session with its leases and tickets, as its client sees them.
type SessionWork struct {
	Session Session `json:"session"`
	// What it holds, the oldest first: at most 1000.
	Leases []OwnLease `json:"leases"`
	// What it waits for, the oldest first: at most 1000.
	Tickets []OwnTicket `json:"tickets"`
	Stamp
}

// OwnLease is a lease of the asking session, with its id.
type OwnLease struct {
	ID    LeaseID         `json:"id"`
	Fence interlock.Fence `json:"fence,string"`
	// The flow within the session.
	Flow     string       `json:"flow" text:"line"`
	Purpose  string       `json:"purpose" text:"line"`
	Claims   []Claim      `json:"claims"`
	Liveness Liveness     `json:"liveness"`
	Held     Milliseconds `json:"held_ms"`
	// The time until it ends if nothing more is heard of the session.
	ExpiresIn Milliseconds `json:"expires_in_ms"`
}

// OwnTicket is a request of the asking session in the queue, with its id.
type OwnTicket struct {
	ID TicketID `json:"id"`
	// The flow within the session.
	Flow    string `json:"flow" text:"line"`
	Purpose string `json:"purpose" text:"line"`
	// Empty for a declared wait for another agent.
	Claims []Claim `json:"claims"`
	// 1 is the next; 0 has an offer, or is a declared wait.
	Position int `json:"position" min:"0"`
	// The keys are offered to it, and it has not answered yet.
	Offered bool         `json:"offered"`
	Waited  Milliseconds `json:"waited_ms"`
}

// Heartbeat is the answer to a session's heartbeat.
type Heartbeat struct {
	Session Session `json:"session"`
	// Leases in force with news for their holder: they end soon, another agent asks for them, some of their parts are to
	// be stopped, or the list of known leases leaves them out.
	Warnings []LeaseNotice `json:"warnings"`
	// Leases that are gone or in grace, each once.
	Losses []LeaseLoss `json:"losses"`
	// The session has other held leases than the client knows of: its next heartbeat, at once, lists those that it knows.
	WantsList bool `json:"wants_list,omitempty"`
	Stamp
}

// LeaseNotice is a lease with news for its holder.
type LeaseNotice struct {
	Lease  Lease  `json:"lease"`
	Advice Advice `json:"advice"`
}

// LeaseLoss is a lease that is gone or in grace.
type LeaseLoss struct {
	Lease Lease `json:"lease"`
	Code  Code  `json:"code"`
	// The cause; for a revocation, the credential and the reason.
	Detail string `json:"detail" text:"line"`
	Advice Advice `json:"advice"`
}

// StartedRun is a run as its starter sees it.
type StartedRun struct {
	// The id of its lease: the secret of its starter.
	ID       LeaseID `json:"id"`
	Org      string  `json:"org" text:"line"`
	Workflow string  `json:"workflow,omitempty" text:"line"`
	Lease    Lease   `json:"lease"`
}

// RunAnswer is the answer of POST /v1/runs.
type RunAnswer struct {
	Outcome string     `json:"outcome" enum:"granted"`
	Run     StartedRun `json:"run"`
	// Notes of earlier runs, oldest first.
	Notes []Note `json:"notes"`
	// Warnings about the request: a key that is spelled almost like another.
	Warnings []string `json:"warnings,omitempty" text:"line"`
	Advice   *Advice  `json:"advice,omitempty"`
	Stamp
}

// Run is a run as others see it.
type Run struct {
	Org      string `json:"org" text:"line"`
	Workflow string `json:"workflow,omitempty" text:"line"`
	Holder   Holder `json:"holder"`
}

// Runs is the answer of GET /v1/runs.
type Runs struct {
	Runs []Run `json:"runs"`
	// More runs: ask with it.
	Cursor string `json:"cursor,omitempty"`
	Stamp
}
