package record

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
)

// Event is one change: its subject, its cause and its time. It is a union; the kinds' comments
// list the fields that each uses beyond the subject. The tag journal is the field's place in the
// journal: see internal/gen/journal.
//
//	go run ./internal/gen
type Event struct {
	Kind Kind
	At   Time

	// The subject: its owner and its identity.
	Namespace interlock.Namespace `journal:"0,name"`
	Session   uint64              `journal:"1"` // number of the session; 0 for an anonymous holder
	Agent     string              `journal:"2,name"`
	Flow      string              `journal:"3,name"`
	Claims    []interlock.Claim   `journal:"4"`
	Actor     string              `journal:"5,name"` // the principal that caused it; "" without credentials
	// YieldRequested, and the end of a preempted request: the agent that asks for it
	Asker string `journal:"56,name"`

	// A request.
	Num             uint64   `journal:"6"` // its number
	ID              [16]byte `journal:"7"`
	Purpose         string   `journal:"8,name"`
	Trace           string   `journal:"9"`
	Priority        int      `journal:"13"`
	interlock.Terms `journal:"TTL=10,Grace=11,MaxHold=12,Stall=35,LockDelay=36,MaxWait=37,Group=34:name,Division=38"`

	// The outcome.
	Fence   interlock.Fence       `journal:"14"`
	Offer   bool                  `journal:"15"`
	Reason  Reason                `journal:"16"`
	Outcome string                `journal:"17"` // words, or a code: see Why
	Note    string                `journal:"18"`
	Waited  time.Duration         `journal:"19"`
	Held    time.Duration         `journal:"20"`
	Cycle   []interlock.CycleStep `journal:"21"`
	Changed bool                  `journal:"31"` // a possible writer held a key meanwhile; TaskDispatched: see there

	// More of a request.
	Any    bool     `journal:"33"` // Claims are alternatives
	Lead   bool     `journal:"39"` // it is ahead of new requests
	Base   uint64   `journal:"40"` // the number of the lease that it converts, or belongs to as a part
	BaseID [16]byte `journal:"51"` // the id of that lease
	Part   bool     `journal:"41"` // it is a part of a shared-out key, of the member with number Base

	// YieldRequested: the asking party; of Queued, when it is a declared wait, its target.
	Target     uint64   `journal:"42"` // number of the session
	TargetFlow string   `journal:"43"`
	By         uint64   `journal:"44"`
	ByID       [16]byte `journal:"50"` // of that request

	Generation uint64 `journal:"45"` // of a barrier: Admitted; in a snapshot Granted; of an effect: EffectChanged
	Freed      bool   `journal:"46"` // Parked; in a snapshot Answered: the id has left the window
	// Resumed; in a snapshot Parked, and of others: the request was parked once, so Arrived counts
	Queued  bool          `journal:"47"`
	Arrived time.Duration `journal:"48"` // in a snapshot: how long before At a request arrived that was parked once
	Blob    []byte        `journal:"49"` // PatternSet, Configured, Written, EffectChanged

	Version     interlock.Version `journal:"52"` // of an event that answers a commit, too
	AsOf        interlock.Version `journal:"53"` // a request's: see Acquire; 0 where the namespace had no commit yet
	ContentType string            `journal:"54"`
	// Queued, Granted: store.WantsDocuments, store.Encloses or 0; Written: interlock.WriteOp; EffectChanged:
	// interlock.EffectState; Decided: interlock.Verdict; Parked: asksPerson; of a task
	// interlock.TaskState; NamespaceMoved: MoveStep
	Op uint8 `journal:"55"`

	// Opened, Counters.
	Epoch  interlock.Epoch `journal:"22"`
	Writes uint64          `journal:"32"` // leases that could write and have ended

	// Answered, and every event that carries out a command with a request id; of Refused
	// only Code.
	// Scope is the session in which the id counts, 0 for the namespace.
	Scope       uint64            `journal:"30"`
	RequestID   string            `journal:"23"`
	Seq         uint64            `journal:"24"`
	Acked       uint64            `journal:"25"`
	Fingerprint uint64            `journal:"26,fixed"`
	Answer      interlock.Outcome `journal:"27"`
	// the kind of the thing that it made under ID; 0 also of versions that did not record it
	Made    uint8          `journal:"57"`
	Code    interlock.Code `journal:"28"`
	Message string         `journal:"29"` // of earlier versions; now it is Text
	Text    []byte         `journal:"58"` // the answer: see Reply
	Cause   []byte         `journal:"59"` // the outcome as a message of the engine: see Why

	// Other meanings of a bit, by kind.
	PatternName string `journal:"8,name,for=PatternSet|PatternDropped|Refused"`
	QueueName   string `journal:"8,name,for=QueueSet|QueueDropped"`
	KeyClass    string `journal:"8,name,for=HoldTime"`
	WebhookName string `journal:"8,name,for=WebhookSet|WebhookDeleted|WebhookRotated|WebhookDelivered"`
	// SessionName is the public name of the session of a writer, a claimer or a worker.
	SessionName string `journal:"8,name,for=Written|EffectChanged|AttemptFailed|TaskMoved|ApprovalRequested|ApprovalDecided|Logged"`
	Result      string `journal:"18,for=EffectChanged"`
	// Due is how long after At the task is due.
	Due time.Duration `journal:"19,for=AttemptFailed|TaskMoved|ApprovalDecided"`
	// After is how long after At a task came to stand where it stands, or a bucket will be full.
	After      time.Duration `journal:"19,for=TaskSubmitted|Bucket"`
	OtherShard uint64        `journal:"42,for=NamespaceMoved"`
	// Idle is the time since the event before the term.
	Idle time.Duration `journal:"19,for=Opened"`

	attributes attributes // not journaled
}

// attributes are the names that the event of a request is counted under.
type attributes struct {
	patterns []string // shared, never changed
	org      string
	group    string
}

// Attribute sets the names that the event of a request is counted under: see Patterns, Org and Claimants.
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

// Reply returns the answer of the command, nil for none.
func (ev *Event) Reply() *message.Text { return joinText(ev.Message, ev.Text) }

// SetReply sets the answer of the command. A sentence of an earlier version stays where that
// version wrote it.
func (ev *Event) SetReply(t *message.Text) { ev.Message, ev.Text = splitText(t) }

// Why returns the outcome, which of a task is why it stands where it stands: a message of the
// engine, or the words that a caller or an earlier version wrote. It is nil for none.
func (ev *Event) Why() *message.Text { return joinText(ev.Outcome, ev.Cause) }

// SetWhy sets the outcome.
func (ev *Event) SetWhy(t *message.Text) { ev.Outcome, ev.Cause = splitText(t) }

// joinText returns the message in two fields of an event: words, or a message as journals have it.
func joinText(words string, b []byte) *message.Text {
	if len(b) == 0 {
		return message.Plain(words)
	}
	t, err := message.Read(b)
	if err != nil {
		return message.New(message.None)
	}
	return t
}

// splitText returns the two fields for a message.
func splitText(t *message.Text) (words string, b []byte) {
	words, ok := t.Verbatim()
	if !ok {
		b = message.Append(nil, t)
	}
	return words, b
}
