package record

import (
	"time"

	"github.com/interlockdev/interlock"
)

// Event is one change: its subject, its cause and its time. It is a union; the kinds' comments
// list the fields that each uses beyond the subject.
type Event struct {
	Kind Kind
	At   Time

	// The subject: its owner and its identity.
	Namespace interlock.Namespace
	Session   uint64 // number of the session; 0 for an anonymous holder
	Agent     string
	Flow      string
	Claims    []interlock.Claim
	Actor     string // the principal that caused it; "" without credentials
	Asker     string // Asked, and the end of a preempted request: the agent that asks for it

	// A request.
	Num      uint64 // its number
	ID       [16]byte
	Purpose  string
	Trace    string
	Priority int
	interlock.Terms

	// The outcome.
	Fence   interlock.Fence
	Offer   bool
	Reason  Reason
	Outcome string
	Note    string
	Waited  time.Duration
	Held    time.Duration
	Cycle   []interlock.CycleStep
	Changed bool // a possible writer held one of the keys while the request waited

	// More of a request.
	Any    bool     // Claims are alternatives
	Lead   bool     // it is ahead of new requests
	Base   uint64   // the number of the lease that it converts, or belongs to as a part
	BaseID [16]byte // the id of that lease
	Part   bool     // it is a part of a shared-out key, of the member with number Base

	// Asked: the asking party; of Queued, when it is a declared wait, its target.
	Target     uint64 // number of the session
	TargetFlow string
	By         uint64
	ByID       [16]byte // of that request

	Generation uint64        // of a barrier: Admitted; in a snapshot Granted; of an effect: EffectChanged
	Freed      bool          // Parked; in a snapshot Answered: the id has left the window
	Queued     bool          // Resumed; in a snapshot Parked, and of others: the request was parked once, so Arrived counts
	Arrived    time.Duration // in a snapshot: how long before At a request arrived that was parked once
	Blob       []byte        // PatternSet, Configured, Written, EffectChanged

	Version     interlock.Version // of an event that answers a commit, too
	AsOf        interlock.Version // a request's: see Acquire; 0 where the namespace had no commit yet
	ContentType string
	Op          uint8 // Queued, Granted: wantsDocuments or 0; Written: interlock.WriteOp; EffectChanged: interlock.EffectState; Decided: interlock.Verdict; Parked: asksPerson; of a task interlock.TaskState

	// Opened, Counters.
	Epoch  interlock.Epoch
	Writes uint64 // leases that could write and have ended

	// Answered, and every event that carries out a command with a request id; of Refused
	// only Code.
	// Scope is the session in which the id counts, 0 for the namespace.
	Scope       uint64
	RequestID   string
	Seq         uint64
	Acked       uint64
	Fingerprint uint64
	Answer      Outcome
	Made        uint8 // the kind of the thing that it made under ID; 0 also of versions that did not record it
	Code        interlock.Code
	Message     string

	attributes attributes // not journaled
}

// attributes are the names that the event of a request is counted under.
type attributes struct {
	patterns []string // shared, never changed
	org      string
	group    string
}

// Attribute sets what the event of a request is counted under: see Patterns, Org and Claimants.
// The caller does not change patterns after that.
func (ev *Event) Attribute(patterns []string, org, group string) {
	ev.attributes = attributes{patterns, org, group}
}

// Patterns returns the names of the patterns that the keys of a request fit, each once, when it
// was granted, left the line or ended; "" stands for keys that fit none. The first 8 claims
// count. It is nil for other events. The caller does not change it.
func (ev *Event) Patterns() []string { return ev.attributes.patterns }

// Org returns the organisation of a run, for events with non-nil Patterns; "" if there is none.
func (ev *Event) Org() string { return ev.attributes.org }

// Claimants returns the group of a request, for the same events.
func (ev *Event) Claimants() string { return ev.attributes.group }
