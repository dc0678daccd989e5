package engine

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Effect is an output for a caller: an answer or a push. It may leave only when the entry of
// its step, and all before it, are durable.
type Effect struct {
	To      store.Caller
	Outcome interlock.Outcome

	Lease   interlock.Lease
	Ticket  interlock.Ticket
	Session Session
	Work    *SessionWork // of ShowSession
	Losses  []store.Loss
	// WantsList asks a client for a heartbeat that lists the leases that it knows of.
	WantsList bool

	// Of a commit: its version and documents, or the changes that made it stale.
	Version   interlock.Version
	Documents []interlock.Document
	Stale     []interlock.Stale // at most interlock.MaxStale
	StaleMore bool
	// Contention is how commits and leases fare at the keys in question; nil when there
	// is nothing to advise from.
	Contention *interlock.Contention

	Effect *SideEffect

	Forgotten int  // effects, of ForgetEffects
	More      bool // there are others that it would forget

	Question *LeaseQuestion // of Answer about a parked lease, and of Resume that waits for it
	Tasks    []Task         // of the commands about tasks
	Handed   []Assignment   // Granted, of Pull

	Webhook   *WebhookView // of the commands about webhooks
	NewSecret bool         // the command made its secret, so its caller may see it

	// Repeated marks the answer of an earlier command with the same request id.
	Repeated bool

	// Code and Message say why not; Code is also set for Lost.
	Code    interlock.Code
	Message *message.Text

	// Warnings are about the request: a key that is spelled almost like another.
	Warnings []*message.Text

	// Conflict describes the blockers, for Queued, Skipped and Refused; nil if there are none.
	// Several effects never share one.
	Conflict *store.Conflict
}

// Session is a session as its client sees it.
type Session struct {
	ID        interlock.SessionID
	Name      string // public name
	Agent     string
	TTL       time.Duration
	ExpiresIn time.Duration
}

// MaxShownHolders bounds the holders listed in one answer.
const MaxShownHolders = store.MaxShownHolders

// Output collects what steps decided. The caller makes Entry durable and then
// lets Effects go. It reuses one Output for many steps by resetting the slices to
// length zero: the engine keeps none of them.
type Output struct {
	// Entry has one step's events appended; a step that changed nothing durable
	// appends nothing.
	Entry []byte
	// Effects has one step's effects appended.
	Effects []Effect
	// Events has the same events as Entry appended, for metrics and logs.
	Events []record.Event
}

// LeaseQuestion is the question to a person about a parked lease. The texts are other agents'.
type LeaseQuestion struct {
	Fence    interlock.Fence // that the lease had: its name among the approvals
	Question string
	Agent    string // the agent that requests it
	// Principal is the credential that parked the lease: it was authenticated, Agent was
	// not. "" without credentials.
	Principal string
	Purpose   string
	Claims    []interlock.Claim
	Parking   interlock.ParkStatus
	Decision  *interlock.Decision // nil while it is open
}
