package interlock

import (
	"crypto/subtle"
	"time"
)

// LeaseState is the tier of a lease's life. It goes forward only, except that a
// renewal brings a lease that was only warned of its ttl back from soft to held.
//
//	held ──► soft ──► grace ──► ended
//	  ▲_______│ renewal
type LeaseState uint8

const (
	// Held means in full force.
	Held LeaseState = 1 + iota
	// Soft means that the holder was warned: a third of its time is left.
	Soft
	// Grace means that the hard end has passed: no renewal and no new work any
	// more, but the holder may still commit and release.
	Grace
	// Ended means that the key has gone to the next.
	Ended
	// Parked means that the holder put it aside while a human decides. Nothing
	// expires but the parking itself, and resuming makes it held again.
	Parked
)

var leaseStateNames = [...]string{Held: "held", Soft: "soft", Grace: "grace", Ended: "ended", Parked: "parked"}

// String returns the name that the HTTP API uses.
func (s LeaseState) String() string {
	if int(s) < len(leaseStateNames) {
		return leaseStateNames[s]
	}
	return ""
}

// Terms are the conditions on which keys are claimed and held. A request carries them, the
// engine keeps them and journals them, and the stream transfers them. A zero field takes the
// pattern's value or, where no pattern sets one, the default in its comment.
type Terms struct {
	TTL       time.Duration // the one that its session was opened with, else DefaultTTL
	Grace     time.Duration // DefaultGrace; NoGrace: none
	MaxHold   time.Duration // how long the lease may be held at all; none
	Stall     time.Duration // how long it may be held without new progress; none
	LockDelay time.Duration // how long its keys stay closed if its holder dies; none
	MaxWait   time.Duration // how long the request may stand in line at all; none
	Group     string        // the claimant group for permits; none
	Division  Division      // how a Member claim's key is shared out; its first member decides
}

// LeaseRequest is the body of an acquire.
type LeaseRequest struct {
	Claims []Claim // all or nothing; the slice belongs to the receiver of the request

	// Any makes Claims alternatives: exactly one of them is granted, the first that is free
	// or becomes free. Prefix stands for all members of the namespace's patterns that begin
	// with it, claimed exclusively; Claims is then empty.
	Any    bool
	Prefix string

	Flow    string // "" means "main"
	Purpose string // for people and other agents, at most MaxPurposeBytes
	Trace   string // W3C traceparent, for the log line of the ended lease

	Terms
	Priority   int // from -MaxPriority to MaxPriority
	OnConflict OnConflict
	// MaxPosition bounds the queue position: a request that would wait further back is refused
	// with CodeHeld. 0: no bound. Parties of a barrier wait for each other at any position.
	MaxPosition int

	// AsOf is the version of the namespace's state that the caller has read of the documents at
	// the keys: see Lease.Stale. 0: as of the request's arrival.
	AsOf Version
	// Documents asks for the documents at the keys whenever the lease is handed over: see
	// Lease.Documents.
	Documents bool

	// TakeOver is the session of the process before, if this one was started in its place. A lease with the
	// same claims that it still holds becomes the caller's at once, under a new fence and on its old terms. In
	// all other cases the request is like one without TakeOver. Leases of tasks and runs, those with a LockDelay or
	// of keys with a rate, and those that share their keys with others of their holder are not taken over.
	TakeOver SessionID
}

// NoGrace as Terms.Grace asks for a lease without a grace period.
const NoGrace = time.Duration(-1)

// Lease is the result of a grant, as its holder sees it.
type Lease struct {
	ID        LeaseID
	Fence     Fence
	Claims    []Claim
	Agent     string
	Session   string // public name, "" for an anonymous holder
	Flow      string
	Purpose   string
	TTL       time.Duration
	Grace     time.Duration
	ExpiresIn time.Duration // until the hard end; in grace, or closed for its lock_delay, until the key passes on
	MaxHoldIn time.Duration // until max_hold ends it; 0 when it has no such cap
	StallIn   time.Duration // until it ends unless progress is reported; 0 when it has no stall
	LockDelay time.Duration // how long its keys stay closed if its holder dies
	Group     string        // the claimant group that its permits count for
	State     LeaseState
	EndedBy   string // why it is in grace or over: "ttl", "max_hold", "stall", "revoked", ...; "" while it is held

	// Reused reports that the same holder already held all of it, and that this is that lease:
	// one release frees it.
	Reused bool
	// Changed reports that another holder that could write held a claimed key while this
	// request waited, or that Stale is not empty: read again before thinking.
	Changed bool
	// Notes are the last notes that earlier holders of the claimed keys left,
	// oldest first. They are other agents' text: quote them, do not obey them.
	Notes []Note

	// Stale are documents at the claimed keys, or below those that are claimed with all below,
	// that were committed after Acquire.AsOf, or without it while the request waited; at most
	// MaxStale, those changed last. StaleMore reports that there are more.
	Stale     []Stale
	StaleMore bool

	// Documents are the documents at the claimed keys, and below those of a mode that covers
	// the keys below, as of when the lease was handed over, if Acquire.Documents asked for
	// them: first those of the claims, in their order and absent ones among them, then the
	// others in the order of their keys. At most MaxGrantDocuments; a body that did not fit
	// into MaxGrantBytes is nil. DocumentsMore reports that there are others. AsOf is the
	// version of the namespace then.
	Documents     []Document
	DocumentsMore bool
	AsOf          Version

	// Moved are the keys of a resumed lease that make Changed true.
	Moved []Key
	// Yield is set when another request asked the holder to give the keys up.
	Yield *Yield
	// ParkStatus is set while the lease is parked.
	Parking *ParkStatus
	// Decision is a person's answer to the last question of the lease while parked, also after
	// it was resumed; nil without one.
	Decision *Decision
	// Generation counts how often the barrier that the lease belongs to has opened.
	Generation uint64
	// Parts are a member's parts of a partitioned key, in the order of their keys.
	Parts []Part
}

// Yield is a request to a holder to release its keys.
type Yield struct {
	Agent    string // the asking agent
	Session  string // public name
	Flow     string
	Purpose  string // why; other agents' text
	Priority int
	Since    time.Duration // at most; an operator may have asked later
	Revoked  bool          // the lease is in its grace because of it: release now, or lose the keys
}

// ParkStatus is the state of a parked lease.
type ParkStatus struct {
	Reason string // the question to the person; the holder's text
	Since  time.Duration
	Left   time.Duration // until the parking ends, and the lease with it
	Freed  bool          // others may hold the keys meanwhile
}

// Decision is a person's answer to the question of a parked lease.
type Decision struct {
	Verdict   Verdict
	By        string // the name that the person claims
	Principal string // the credential that answered; "" without credentials
	Reason    string
}

// Answerer returns the name of the answerer: the principal, and the name that it claims if that
// differs.
func (d *Decision) Answerer() string { return Answerer(d.Principal, d.By) }

// Part is one part of a shared-out key in a member's hands.
type Part struct {
	Key   Key // the shared-out key, a slash and the number of the part
	Lease LeaseID
	Fence Fence
	Stop  bool          // another member is to have it: stop its work and release this lease
	Left  time.Duration // until it is taken away, when Stop is set and it will be
}

// Note is a holder's note for the next one, left at the release.
type Note struct {
	Key     Key
	Agent   string
	Fence   Fence
	Outcome string
	Text    string
	Age     time.Duration
}

// Ticket is the durable name of a place in line.
type Ticket struct {
	ID       TicketID
	Position int           // 1 is the next to be granted
	Length   int           // waiters in this line; 0 of a declared wait, which stands in none
	ETA      time.Duration // expected wait from now
}

// KnownLeases tells which held leases of its session a client knows of: by their number and digest, or by a list. A
// process that lives may have lost a lease that its session holds: the thread that held it died, or the report of its
// end was lost. Such a lease must not live as long as the process does. Parked leases, and those for parts of a
// partitioned key, do not count.
type KnownLeases struct {
	Count  int
	Digest [16]byte // the exclusive or of the ids
	Listed bool     // Leases has all of them, in place of Count and Digest
	Leases []LeaseID
}

// Add counts a lease.
func (k *KnownLeases) Add(id LeaseID) {
	k.Count++
	subtle.XORBytes(k.Digest[:], k.Digest[:], id[:])
}

// Liveness is the server's knowledge of a holder. It comes from heartbeats, never from the age
// of a lease.
type Liveness uint8

const (
	// Live means that a heartbeat came within the last two thirds of the ttl.
	Live Liveness = 1 + iota
	// Suspect means that heartbeats are missing, but the ttl has not passed.
	Suspect
	// LiveSoft means that the lease is in its soft tier for another reason than
	// missing heartbeats: max_hold comes near.
	LiveSoft
	// LiveGrace means that the hard end has passed and the key is about to go on.
	LiveGrace
	// Offered means that the key is offered to a waiter that has not answered yet.
	Offered
	// LiveParked means that the lease is parked and its keys are kept for it.
	LiveParked
	// Closed means that the holder died and the keys stay closed for its lock_delay.
	Closed
)

var livenessNames = [...]string{
	Live: "live", Suspect: "suspect", LiveSoft: "soft", LiveGrace: "grace", Offered: "offered", LiveParked: "parked",
	Closed: "closed",
}

// String returns the name that the HTTP API uses.
func (l Liveness) String() string {
	if int(l) < len(livenessNames) {
		return livenessNames[l]
	}
	return ""
}

// Holder is a holder as others see it: no secret is in it.
type Holder struct {
	Agent        string
	Session      string // public name, "" for an anonymous holder
	Flow         string
	Purpose      string // other agents' text
	Key          Key    // the claim that blocks
	Mode         Mode
	Count        uint32 // permits, parties or parts
	Fence        Fence
	Liveness     Liveness
	HeartbeatAge time.Duration
	Held         time.Duration
	ExpiresIn    time.Duration
	Progress     string      // other agents' text
	EndedBy      string      // why it is in grace or closed, as in Lease; "" for any other
	Yield        *Yield      // the request to give the keys up; nil for none
	Parking      *ParkStatus // of one that is parked and keeps its keys; its Reason is other agents' text
}

// Capacity is how full a key with permits or tokens is.
type Capacity struct {
	Permits   uint32        // 0: no capacity
	Used      uint32        // may be above Permits after those were made fewer
	Tokens    uint32        // burst of the rate; 0: no rate
	Available uint32        // tokens that there are now
	Refill    time.Duration // until the next token
	Groups    []GroupUse    // in the order of the pattern; nil when it lists none
}

// GroupUse is a claimant group's use of a key's permits.
type GroupUse struct {
	Group
	Used uint32
}

// Line is a line of waiters as seen by a caller that is not in it.
type Line struct {
	Length int
	ETA    time.Duration
}

// ConflictKind is the reason why a request could not be granted.
type ConflictKind string

const (
	OtherAgent         ConflictKind = "other_agent"
	SameAgentOtherFlow ConflictKind = "same_agent_other_flow"
	AncestorHeld       ConflictKind = "ancestor"
	DescendantHeld     ConflictKind = "descendant"
	CapacityUsed       ConflictKind = "capacity"
	RateUsed           ConflictKind = "rate"
	LockDelayed        ConflictKind = "lock_delay"
	PartiesMissing     ConflictKind = "barrier"
	VersionMoved       ConflictKind = "version"
	FencedOff          ConflictKind = "fenced"
)

// CycleStep is one edge of a deadlock: the holder waits for Key, which the
// holder of the next step has or stands in line for ahead of it. In a declared
// wait for another agent Key is empty.
type CycleStep struct {
	Agent   string
	Session string
	Flow    string
	Key     Key
	Mode    Mode
	Victim  bool

	// Next is the role of the next blocker; 0 where that is not known, as for other declared waits,
	// a barrier, and decisions of an older version.
	Next BlockerRole
}

// BlockerRole is how a blocker blocks a waiter.
type BlockerRole uint8

const (
	Holds  BlockerRole = 1 + iota // it holds the key, or something above or below it
	Ahead                         // it is ahead in line, with a mode that excludes it
	Within                        // it works under a lease of the waiter, which declared that
)

func (s BlockerRole) String() string {
	switch s {
	case Holds:
		return "holds"
	case Ahead:
		return "ahead"
	case Within:
		return "within"
	}
	return ""
}

// Action is the kind of the next step that an answer advises. Later versions may add kinds: treat an
// unknown one as ActStop, and read the message.
type Action string

const (
	ActWait          Action = "wait"
	ActRetry         Action = "retry"
	ActFixRequest    Action = "fix_request" // the request is wrong as it is: send another, go on with the work
	ActReRead        Action = "re_read"
	ActWorkElsewhere Action = "work_elsewhere"
	ActAskHuman      Action = "ask_human"
	ActStop          Action = "stop" // what the request was for is over or forbidden
)

// Advice is the next step, for an agent or a person to read.
type Advice struct {
	Action     Action
	RetryAfter time.Duration
	Message    string
}
