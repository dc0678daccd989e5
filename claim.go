package interlock

import "time"

// Namespace names a tenant. It is part of every key, lease, session and answer,
// and nothing crosses it.
type Namespace string

// DefaultNamespace is used where neither a credential nor a header names one.
const DefaultNamespace Namespace = "default"

// Key names the thing protected: a path with '/' between its segments, such as
// repo:web/src/auth.ts or account:12345. Only '/' separates; ':' is an ordinary
// character. The rules for a valid key are engine.ParseKey's.
type Key string

// Mode says what a claim wants with its key. The five modes and their
// compatibility are the standard ones of multi-granularity locking (Gray,
// Lorie, Putzolu and Traiger, 1976):
//
//	      IS   IX   S    SIX  X
//	IS    yes  yes  yes  yes  -
//	IX    yes  yes  -    -    -
//	S     yes  -    yes  -    -
//	SIX   yes  -    -    -    -
//	X     -    -    -    -    -
type Mode uint8

const (
	// IntentShared says: I will read something below this key.
	IntentShared Mode = 1 + iota
	// IntentExclusive says: I will change something below this key.
	IntentExclusive
	// Shared reads the key and everything below it.
	Shared
	// SharedIntentExclusive reads the key and everything below it, and will
	// change something below it.
	SharedIntentExclusive
	// Exclusive changes the key and everything below it.
	Exclusive
)

var modeNames = [...]string{
	IntentShared:          "intent-shared",
	IntentExclusive:       "intent-exclusive",
	Shared:                "shared",
	SharedIntentExclusive: "shared+intent-exclusive",
	Exclusive:             "exclusive",
}

// String gives the name that the HTTP API uses, or "" for the zero Mode.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return ""
}

// ParseMode reads what Mode.String wrote; ok is false for any other text.
func ParseMode(s string) (m Mode, ok bool) {
	for i, name := range modeNames {
		if name != "" && name == s {
			return Mode(i), true
		}
	}
	return 0, false
}

// Claim is one key with what is wanted of it. A request is a set of claims; it
// is granted as a whole or not at all. The zero Mode means Exclusive.
type Claim struct {
	Key  Key
	Mode Mode
}

// OnConflict says what to do with a request that cannot be granted at once.
type OnConflict uint8

const (
	// Fail refuses the request and leaves nothing behind.
	Fail OnConflict = iota
	// Wait puts the request in line.
	Wait
	// Skip answers that somebody already does it. Unlike Fail it is a success:
	// the caller has nothing to do.
	Skip
)

var onConflictNames = [...]string{Fail: "fail", Wait: "wait", Skip: "skip"}

// String gives the name that the HTTP API uses.
func (c OnConflict) String() string {
	if int(c) < len(onConflictNames) {
		return onConflictNames[c]
	}
	return ""
}

// ParseOnConflict reads what OnConflict.String wrote.
func ParseOnConflict(s string) (c OnConflict, ok bool) {
	for i, name := range onConflictNames {
		if name == s {
			return OnConflict(i), true
		}
	}
	return 0, false
}

// Defaults and limits. Past a limit the answer is a refusal with a code of its
// own, and nothing is lost.
const (
	MaxKeyBytes    = 512 // length of a key
	MaxKeySegments = 16  // depth of a key
	MaxClaims      = 64  // claims of one request

	MaxNamespaces     = 10_000 // of a shard
	MaxNamespaceBytes = 128
	MaxNameBytes      = 128 // an agent's or a flow's name
	MaxPurposeBytes   = 512
	MaxNoteBytes      = 4 << 10
	MaxProgressBytes  = 512
	MaxReasonBytes    = 512
	MaxRequestIDBytes = 128
	MaxBodyBytes      = 1 << 20 // one HTTP body or one frame of the session stream
	MaxPriority       = 100     // priorities go from -MaxPriority to +MaxPriority
	MaxWaitersPerKey  = 10_000
	MaxWaiters        = 100_000   // a namespace
	MaxSessions       = 100_000   // a namespace
	MaxLeases         = 1_000_000 // a namespace

	DefaultTTL   = 30 * time.Second
	MinTTL       = time.Second
	MaxTTL       = 24 * time.Hour
	DefaultGrace = 5 * time.Second
	MaxGrace     = time.Hour
	MaxMaxHold   = 30 * 24 * time.Hour

	// MaxLongPoll bounds how long one HTTP call waits; the place in line lives on.
	MaxLongPoll = 55 * time.Second

	// OfferTTL is how long an unclaimed offer stays with a waiter that belongs to a
	// session, BareOfferTTL with one that has only a ticket.
	OfferTTL     = 5 * time.Second
	BareOfferTTL = 30 * time.Second
	// BareTicketTTL is how long a ticket without a session lives after it was last
	// asked about.
	BareTicketTTL = 2 * time.Minute

	// PriorityBoost is how much earlier one step of priority makes a request count
	// in line: its score is its arrival minus priority times PriorityBoost.
	PriorityBoost = 10 * time.Second

	// RequestIDWindow is how long the answer to a request id is remembered, and
	// MaxRequestIDs how many a namespace remembers at most, whichever ends first.
	RequestIDWindow = 24 * time.Hour
	MaxRequestIDs   = 1_000_000

	// A session remembers at least the last MinSessionRequestIDs, however old, and at
	// most the last MaxSessionRequestIDs.
	MinSessionRequestIDs = 1024
	MaxSessionRequestIDs = 16_384

	// MaxCycleSteps bounds the steps of a deadlock that are told; the victim's is first.
	MaxCycleSteps = 64
)
