package interlock

import "time"

// Pattern is the rules for all keys of one shape in a namespace. If a request leaves a duration
// out, the pattern's is taken; if it asks for more than the pattern's maximum, it gets the
// maximum.
type Pattern struct {
	Name string // its name for operators, up to MaxNameBytes

	// Shape describes the keys that it is for: literal text with variables between. A variable
	// is at least one character without a slash:
	//
	//	account:{id}              any text
	//	ticket:{id:int}           a decimal number; leading zeros are dropped
	//	host:{name:lower}         any text; upper case is made lower case
	//	repo:{name}/{path...}     the last one: any number of segments, also none
	//
	// Where several fit a key, the one with most literal text counts; of those, the
	// one with most variables of a kind; of those, the first by name. Two patterns
	// for the very same keys are refused.
	Shape string
	// Aliases are other spellings of the same keys: a key that fits one is taken for
	// the key that Shape makes of the same variables, before anything else is looked
	// at. So acct-{id} and account:{id} are one thing.
	Aliases []string
	// Members lists the keys of a pool, from which a request may ask for any one by
	// prefix. gpu:{0..7} stands for eight keys.
	Members []string

	// Capacity is how many permits each key has; 0: none. Making it smaller takes nothing from
	// the holders.
	Capacity uint32
	// Rate tokens come back every Per, evenly, up to Burst (0: 1). A grant consumes them: one for
	// each permit, and one for a lock on the whole key. In no Per are more than Rate+Burst-1 of
	// them consumed. Rate 0: none.
	Rate  uint32
	Per   time.Duration // required with Rate
	Burst uint32
	// Groups share the capacity out among claimant groups. A group that is not
	// listed has no minimum and no maximum.
	Groups []Group

	TTL       time.Duration // of a lease that asks for none
	MaxTTL    time.Duration
	Grace     time.Duration
	MaxGrace  time.Duration
	MaxHold   time.Duration // default and maximum
	Stall     time.Duration // default and maximum
	LockDelay time.Duration // default and minimum
	MaxWait   time.Duration // default and maximum
	// MaxWaiters bounds the line of each key; 0: MaxWaitersPerKey.
	MaxWaiters int

	// Allow restricts which principals may claim which modes; the first rule that names the
	// principal counts. Empty: every principal may claim everything.
	Allow []Rule

	Preempt    PreemptPolicy
	Park       ParkPolicy
	MaxPark    time.Duration // default and maximum; 0: DefaultPark, and MaxPark at most
	OnDeadlock DeadlockPolicy

	// Write is the policy for commits to the keys. With WriteSingle only the principal Writer
	// may commit, or a worker of the queue WriterQueue that works on a message to the key; one
	// of the two is set.
	Write       WritePolicy
	Writer      string
	WriterQueue string

	// AuditRefusals has requests that are refused at the keys recorded in the trail: 20 a
	// minute, each caller's same refusal once, and how many were left out.
	AuditRefusals bool
}

// PatternRevision is a pattern as it was set once. Revisions count from 1 for each name.
type PatternRevision struct {
	Pattern  Pattern
	Revision uint64
	Dropped  bool   // by it the pattern was taken away; Pattern has only its name
	Reverted uint64 // the earlier revision that it brought back; 0: none
	Actor    string
	Age      time.Duration
}

// Group is the share of a claimant group in a key's capacity.
type Group struct {
	Name string // "" is for requests that name none
	Min  uint32 // kept free for it
	Max  uint32 // as many as it gets at most; 0: no bound but the capacity
}

// Rule lets a principal claim modes.
type Rule struct {
	Principal string // as in Principal.Matches: a credential's name, GroupPrefix and a group, or "*"
	Modes     []Mode // empty: all
}

// PreemptPolicy is the permitted effect of a request with Preempt on a holder.
type PreemptPolicy uint8

const (
	// PreemptAsk names the asking agent and its purpose to the holder, and leaves it to the
	// holder.
	PreemptAsk PreemptPolicy = iota
	// PreemptRevoke ends the lease after its grace, if the request's priority is not
	// lower than the lease's.
	PreemptRevoke
	// PreemptNever makes Preempt the same as Wait.
	PreemptNever
)

// ParkPolicy decides whether a parked lease keeps its keys.
type ParkPolicy uint8

const (
	// ParkChoice leaves it to the holder.
	ParkChoice ParkPolicy = iota
	// ParkKeep keeps the keys from others.
	ParkKeep
	// ParkFree lets others have them meanwhile.
	ParkFree
	// ParkNever refuses parking.
	ParkNever
)

// DeadlockPolicy decides whether a deadlock victim loses the leases that the others of the
// cycle wait for.
type DeadlockPolicy uint8

const (
	// DeadlockRefuse ends the victim's wait and no more.
	DeadlockRefuse DeadlockPolicy = iota
	// DeadlockRevoke also ends those leases after their grace.
	DeadlockRevoke
)

var (
	preemptNames  = [...]string{PreemptAsk: "ask", PreemptRevoke: "revoke", PreemptNever: "never"}
	parkNames     = [...]string{ParkChoice: "choice", ParkKeep: "keep", ParkFree: "free", ParkNever: "never"}
	deadlockNames = [...]string{DeadlockRefuse: "refuse", DeadlockRevoke: "revoke"}
	divisionNames = [...]string{ByHash: "hash", ByRange: "range", ByLoad: "load"}
)

// The names that the HTTP API uses.
func (p PreemptPolicy) String() string  { return nameOf(preemptNames[:], p) }
func (p ParkPolicy) String() string     { return nameOf(parkNames[:], p) }
func (p DeadlockPolicy) String() string { return nameOf(deadlockNames[:], p) }
func (d Division) String() string       { return nameOf(divisionNames[:], d) }

// These functions parse the texts of String; ok is false for any other text.
func ParsePreemptPolicy(s string) (PreemptPolicy, bool) {
	return parseName[PreemptPolicy](preemptNames[:], s)
}
func ParseParkPolicy(s string) (ParkPolicy, bool) { return parseName[ParkPolicy](parkNames[:], s) }
func ParseDeadlockPolicy(s string) (DeadlockPolicy, bool) {
	return parseName[DeadlockPolicy](deadlockNames[:], s)
}
func ParseDivision(s string) (Division, bool) { return parseName[Division](divisionNames[:], s) }

func nameOf[T ~uint8](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return ""
}

func parseName[T ~uint8](names []string, s string) (T, bool) {
	for i, name := range names {
		if name == s {
			return T(i), true
		}
	}
	return 0, false
}

// Division is how the parts of a shared-out key are assigned to its members.
type Division uint8

const (
	// ByHash assigns each part to the member that hashes highest with it, no member more than
	// its even share: few parts move when a member comes or goes.
	ByHash Division = iota
	// ByRange assigns each member neighbouring parts.
	ByRange
	// ByLoad evens out the load of the parts, and moves few of them for it. A part's load
	// is the number of leases granted on keys below it, older ones counting less.
	ByLoad
)

// Settings are an operator's settings for a whole namespace.
type Settings struct {
	// StrictOrder demands that a flow asks for keys in ascending order: a key that
	// does not come after all that the flow holds is refused, so that no deadlock of
	// exclusive claims can arise. Keys are compared segment by segment, so that a comes
	// before a/c, and a/c before a!.
	StrictOrder bool
	// Closed refuses keys that match no pattern. Until it is set such keys are open.
	Closed bool
	// NearMisses warns of a new key that is spelled almost like a live one.
	NearMisses bool

	// EffectRetention is how long a done effect is remembered at least. An older one makes
	// room when the namespace remembers as many as it can; then it may be done again. At
	// most EffectWindow; 0 means DefaultEffectRetention.
	EffectRetention time.Duration

	// Quota bounds the namespace, PrincipalQuota each of its principals.
	Quota          Quota
	PrincipalQuota Quota
}

// Quota bounds the use of one tenant. 0 means the limit of the version.
type Quota struct {
	Keys      int // keys with a holder or a waiter; of a namespace only
	Leases    int
	Waiters   int
	Sessions  int
	Documents int // of a namespace only
	State     int // bytes that documents count, as for MaxStateBytes; of a namespace only
	Requests  int // a second, at the API
	Bytes     int // of request bodies and stream frames, a second, at the API
}
