package api

import "github.com/interlockdev/interlock"

// LeaseList is the answer of GET /v1/leases.
type LeaseList struct {
	Leases []ListedLease `json:"leases"`
	// The cursor of the next page; left out on the last one. It belongs to this namespace and filter.
	Cursor string `json:"cursor,omitempty"`
	Stamp
}

// ListedLease is a lease as others see it, without its id.
type ListedLease struct {
	// Number of its request: the same in all its events.
	Request uint64 `json:"request,string"`
	Name
	// The credential that it belongs to; left out without credentials.
	Principal string `json:"principal,omitempty" text:"line"`
	// The holder's own text.
	Purpose string `json:"purpose" text:"line"`
	// The holder's own text.
	Progress string          `json:"progress" text:"line"`
	Claims   []Claim         `json:"claims"`
	Fence    interlock.Fence `json:"fence,string"`
	// From heartbeats, never from age.
	Liveness     Liveness     `json:"liveness"`
	Held         Milliseconds `json:"held_ms"`
	HeartbeatAge Milliseconds `json:"heartbeat_age_ms"`
	// The time until it ends if nothing more is heard of the holder.
	ExpiresIn Milliseconds `json:"expires_in_ms"`
	// Why it is in grace or closed, as in a lease; left out of any other.
	EndedBy string   `json:"ended_by,omitempty" text:"line"`
	Parking *Parking `json:"parking,omitempty"`
	// The task that it is an attempt at.
	Task TaskID `json:"task,omitempty"`
}

// TicketList is the answer of GET /v1/tickets.
type TicketList struct {
	Tickets []ListedTicket `json:"tickets"`
	// The cursor of the next page; left out on the last one. It belongs to this namespace and filter.
	Cursor string `json:"cursor,omitempty"`
	Stamp
}

// ListedTicket is a request in line as others see it, without its id.
type ListedTicket struct {
	// Its number: the same in all its events.
	Request uint64 `json:"request,string"`
	Name
	// The credential that it belongs to; left out without credentials.
	Principal string `json:"principal,omitempty" text:"line"`
	// The waiter's own text.
	Purpose string `json:"purpose" text:"line"`
	// Empty for a declared wait for another agent.
	Claims []Claim `json:"claims"`
	// The claims are alternatives: one of them is granted.
	Any bool `json:"any,omitempty"`
	// The priority of the wait: its own, or an inherited one.
	Priority int `json:"priority"`
	// 1 is the next; 0 has an offer, or is a declared wait.
	Position int `json:"position" min:"0"`
	// Waiters in that line.
	Length int          `json:"length" min:"0"`
	Waited Milliseconds `json:"waited_ms"`
	ETA    Milliseconds `json:"eta_ms"`
	// The keys are offered to it, and it has not answered yet.
	Offered bool `json:"offered"`
	// The party that a declared wait is for.
	On *Name `json:"on,omitempty"`
}

// SessionList is the answer of GET /v1/sessions.
type SessionList struct {
	Sessions []ListedSession `json:"sessions"`
	// The cursor of the next page; left out on the last one. It belongs to this namespace and filter.
	Cursor string `json:"cursor,omitempty"`
	Stamp
}

// ListedSession is a session as others see it, without its id.
type ListedSession struct {
	// Its public name.
	Name string `json:"session" text:"line"`
	// The same in all its events.
	Number uint64 `json:"session_number,string"`
	Agent  string `json:"agent" text:"line"`
	// The credential that opened it; left out without credentials.
	Principal string `json:"principal,omitempty" text:"line"`
	// The agent's own text.
	Progress     string       `json:"progress" text:"line"`
	Open         Milliseconds `json:"open_ms"`
	HeartbeatAge Milliseconds `json:"heartbeat_age_ms"`
	// The time until it ends if nothing more is heard of it.
	ExpiresIn Milliseconds `json:"expires_in_ms"`
	TTL       Milliseconds `json:"ttl_ms"`
	// It has a session stream at this moment. A session over HTTP has none.
	Connected bool `json:"connected"`
	Leases    int  `json:"leases" min:"0"`
	Waits     int  `json:"waits" min:"0"`
	// The claims of its first leases, at most 16.
	Holds []Claim `json:"holds"`
	// The claims of its first waits, at most 16.
	WaitsFor []Claim `json:"waits_for"`
}
