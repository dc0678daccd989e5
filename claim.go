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

// Mode is the access that a claim wants to its key. The five modes and their compatibility are
// the standard ones of multi-granularity locking (Gray, Lorie, Putzolu and Traiger, 1976):
//
//	      IS   IX   S    SIX  X
//	IS    yes  yes  yes  yes  -
//	IX    yes  yes  -    -    -
//	S     yes  -    yes  -    -
//	SIX   yes  -    -    -    -
//	X     -    -    -    -    -
type Mode uint8

const (
	// IntentShared announces a read of something below this key.
	IntentShared Mode = 1 + iota
	// IntentExclusive announces a change of something below this key.
	IntentExclusive
	// Shared reads the key and everything below it.
	Shared
	// SharedIntentExclusive reads the key and everything below it, and will
	// change something below it.
	SharedIntentExclusive
	// Exclusive changes the key and everything below it.
	Exclusive

	// The claims from here on come with a count. Towards other claims each counts as
	// IntentExclusive: it shares the key with its like and with intents, and neither
	// with readers nor with writers of the whole key.

	// Permits takes Claim.Count permits of a key that has a capacity by its pattern, or as many
	// tokens of one that has a rate, or both.
	Permits
	// Barrier arrives at a barrier of Claim.Count parties, which are granted together
	// once all of them are there.
	Barrier
	// Member joins the group that shares out the Claim.Count parts of a key.
	Member
)

var modeNames = [...]string{
	IntentShared:          "intent-shared",
	IntentExclusive:       "intent-exclusive",
	Shared:                "shared",
	SharedIntentExclusive: "shared+intent-exclusive",
	Exclusive:             "exclusive",
	Permits:               "permits",
	Barrier:               "barrier",
	Member:                "member",
}

// Counts reports whether a claim in this mode has a count.
func (m Mode) Counts() bool { return m >= Permits }

// String returns the name that the HTTP API uses, or "" for the zero Mode.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return ""
}

// ParseMode parses the text of Mode.String; ok is false for any other text.
func ParseMode(s string) (m Mode, ok bool) {
	for i, name := range modeNames {
		if name != "" && name == s {
			return Mode(i), true
		}
	}
	return 0, false
}

// Claim is one key with a mode. A request is a set of claims; it is granted as a whole or not
// at all. The zero Mode means one permit where the key's pattern has a capacity or a rate, so that
// both bind every caller, and Exclusive elsewhere.
type Claim struct {
	Key   Key
	Mode  Mode
	Count uint32 // permits, parties or parts, for the modes that have a count; else 0
}

// OnConflict is how the server treats a request that it cannot grant at once.
type OnConflict uint8

const (
	// Fail refuses the request and leaves nothing behind.
	Fail OnConflict = iota
	// Wait puts the request in line.
	Wait
	// Skip answers that another holder already does it. Unlike Fail it is a success: the caller
	// has nothing to do.
	Skip
	// Preempt enqueues the request and asks the blocking holders to yield. Where the pattern of
	// the key allows it, they lose the key after their grace.
	Preempt
)

var onConflictNames = [...]string{Fail: "fail", Wait: "wait", Skip: "skip", Preempt: "preempt"}

// String returns the name that the HTTP API uses.
func (c OnConflict) String() string {
	if int(c) < len(onConflictNames) {
		return onConflictNames[c]
	}
	return ""
}

// ParseOnConflict parses the text of OnConflict.String.
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

	MaxAlternatives = 1024    // claims of a request for any one of them
	MaxCount        = 1 << 30 // permits, parties or parts of one claim
	MaxParties      = 256     // of a barrier: all of a generation stand in one entry of the journal
	MaxParts        = 4096    // of a shared-out key
	MaxPatterns     = 1000    // of a namespace
	MaxMembers      = 1024    // keys that a pattern lists
	MaxGroups       = 64      // claimant groups of a pattern
	MaxShapeBytes   = 512     // of a pattern's shape or alias

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

	MaxDocumentBytes     = 1 << 20 // of one document
	MaxCommitBytes       = 1 << 20 // of all bodies of one commit
	MaxReads             = 256     // keys that a commit or a snapshot read names
	MaxKnown             = 1024    // leases that a heartbeat reports as known
	MaxWrites            = 256     // of a commit
	MaxReadBytes         = 4 << 20 // of all bodies in one answer
	MaxContentTypeBytes  = 128
	MaxDocuments         = 1_000_000 // a namespace
	DocumentBytes        = 384       // that a document counts besides its key, its body and its texts
	MaxStateBytes        = 512 << 20 // a namespace, that its documents count as they now are
	MaxTombstones        = 100_000   // deletions that a namespace remembers by key
	MaxTombstoneBytes    = 64 << 20  // that these take, with the notes of their deleters
	MaxVersions          = 32        // earlier versions kept of a key
	MaxVersionBytes      = 1 << 20   // of the earlier versions of a key
	MaxSpaceVersionBytes = 64 << 20  // of the earlier versions of a namespace; the oldest go first
	MaxStale             = 16        // documents that one answer tells about as stale
	MaxBetween           = 15        // writes before the last that it lists for each of them
	MaxGrantDocuments    = 64        // documents that come with a grant
	MaxGrantBytes        = 256 << 10 // of their bodies and texts; a body without room is left out
	MaxEarlier           = 3         // earlier writes that are listed for each of them

	MaxActionBytes = 16 << 10            // of a canonical action
	MaxResultBytes = 64 << 10            // of an effect's result
	MaxEffects     = 100_000             // a namespace remembers
	MaxEffectBytes = 256 << 20           // of their actions, results and reasons
	EffectWindow   = 30 * 24 * time.Hour // how long a done effect is remembered

	// DefaultEffectRetention is how long a done effect is remembered at least when a namespace
	// has no room for others, unless its settings differ.
	DefaultEffectRetention = 7 * 24 * time.Hour
	// MaxForget is how many done effects one command forgets at most.
	MaxForget        = 1000
	DefaultEffectTTL = time.Minute // of a claim with neither a session nor a lease
	MaxEffectTTL     = 24 * time.Hour

	MaxWebhooks       = 100            // of a namespace
	MaxAllWebhooks    = 10_000         // of all namespaces together
	MaxURLBytes       = 2048           // of a webhook
	MaxWebhookEvents  = 64             // types of events that a webhook lists
	WebhookSecretTime = 24 * time.Hour // how long the former secret signs, too, after a rotation
	MaxQueues         = 1000           // of a namespace
	MaxTasks          = 1_000_000      // of a queue, not settled
	MaxSettledTasks   = 100_000        // done, dead and cancelled ones that a namespace remembers; done ones go first
	MaxPayloadBytes   = 256 << 10
	TaskBytes         = 768     // that a task counts besides its claims, payload, result and texts
	TaskClaimBytes    = 384     // that a claim of a task counts besides its key
	MaxTaskBytes      = 2 << 30 // a namespace, that its tasks count; done ones go first
	MaxPull           = 64      // tasks that one pull takes
	MaxPulls          = 1024    // idle pulls of a session
	MaxFollows        = 1024    // waits of a session for the ends of tasks
	MaxFollowers      = 1024    // waits for the end of one task
	MaxListeners      = 16_384  // idle pulls, and waits for the ends of tasks, of a namespace without sessions
	MaxFollowUps      = 64      // tasks that one acknowledgement submits
	MaxKeptAttempts   = 16      // of a task
	MaxAttempts       = 1000
	DefaultAttempts   = 5
	DefaultBackoff    = time.Second
	DefaultMaxBackoff = 10 * time.Minute
	MaxDelay          = 365 * 24 * time.Hour
	MaxApprovals      = 16   // that a queue needs for one task
	MaxShares         = 1000 // groups that a queue lists
	MaxAccess         = 256  // entries of an access list
	MaxQuestionBytes  = 4 << 10

	MaxLogEntries         = 1024     // of the log of a key
	MaxLogBytes           = 1 << 20  // of the log of a key: messages, replies and states
	MaxSpaceLogBytes      = 64 << 20 // of all logs of a namespace; the oldest entries go first
	MaxRevisions          = 16       // of a pattern, that are remembered
	MaxRevisionBytes      = 1 << 20  // of those of a pattern; the present one is kept in any case
	MaxSpaceRevisionBytes = 64 << 20 // of those of all patterns of a namespace; the oldest go first, present ones never

	DefaultTTL   = 30 * time.Second
	MinTTL       = time.Second
	MaxTTL       = 24 * time.Hour
	DefaultGrace = 5 * time.Second
	MaxGrace     = time.Hour
	MaxMaxHold   = 30 * 24 * time.Hour
	MaxStall     = 24 * time.Hour
	MaxLockDelay = time.Hour
	MaxMaxWait   = 30 * 24 * time.Hour
	MaxPark      = 30 * 24 * time.Hour
	DefaultPark  = 24 * time.Hour // how long a parked lease waits to be resumed

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

	// NamespaceIdle is how long an empty namespace must have been left alone before it is
	// forgotten in favour of a new one.
	NamespaceIdle = 10 * time.Minute

	// RequestIDWindow is how long the answer to a request id is remembered, and
	// MaxRequestIDs how many a namespace remembers at most, whichever ends first.
	RequestIDWindow = 24 * time.Hour
	MaxRequestIDs   = 1_000_000

	// A session remembers at least the last MinSessionRequestIDs, however old, and at
	// most the last MaxSessionRequestIDs.
	MinSessionRequestIDs = 1024
	MaxSessionRequestIDs = 16_384

	// MaxCycleSteps bounds the reported steps of a deadlock; the victim's is first.
	MaxCycleSteps = 64
)
