package incident

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// The bounds of a Reducer.
const (
	MaxOfKind = 200     // incidents of one kind
	MaxOpen   = 100_000 // waits that go on, and leases with keys that stay closed after their end
	MaxNames  = 16      // agents, and keys, of one incident
)

// Kind is the kind of an incident.
type Kind string

// The kinds of incidents. The texts are in answers.
const (
	Deadlock   Kind = "deadlock"    // agents waited for each other, and one was refused
	LostLease  Kind = "lost_lease"  // a lease ended against its holder's will
	StaleWrite Kind = "stale_write" // a late writer was refused by its fence or its version
	StuckWait  Kind = "stuck_wait"  // a wait reached its limit, or lasted long
	FailOver   Kind = "fail_over"   // a server began a new epoch
	DeadLetter Kind = "dead_letter" // a task is not tried again
)

// Kinds are all kinds, the most urgent first.
var Kinds = []Kind{Deadlock, LostLease, StaleWrite, DeadLetter, StuckWait, FailOver}

// Incident is something that went wrong.
type Incident struct {
	Kind      Kind
	Namespace interlock.Namespace // "" for a fail-over, which is of the whole server
	// Time and Index are those of the first event, and Last the time of the last one that was folded in.
	Time, Last record.Time
	Index      interlock.Index
	// Before is the index of the entry before it: the state after that entry still has the waits and holders. It is 0
	// if the journal begins with the event. Of a wait that goes on it is the index of the last event.
	Before interlock.Index
	Count  int // how often it happened, 1 or more
	// Cause is the reason or code: ttl, max_hold, fenced, wait_limit and so on. "" for some.
	Cause  string
	Agents []string         // those concerned, each once: the victim or the loser first; "" is an unnamed agent
	Keys   []interlock.Key  // likewise, in the order of the claims
	Task   interlock.TaskID // of a dead letter
	Took   time.Duration    // how long the lease was held, the wait lasted, or no event happened before a fail-over
	GoesOn bool             // a wait that had not ended
	Cycle  []interlock.CycleStep
	Text   string // a sentence; names of agents and keys in it are their own text
	Next   string // a sentence with the next step
	// Command shows more, or does the next step. "" if there is none.
	Command string
}

// Options are what counts as an incident.
type Options struct {
	// Since is the time of the first event that may be an incident. Earlier ones only tell what goes on.
	Since record.Time
	// Stuck is how long a wait must last; 0: DefaultStuck. One that reached its own limit always counts.
	Stuck time.Duration
	// Fold is how much later the same incident is counted as one; 0: DefaultFold.
	Fold time.Duration
}

// The defaults of Options.
const (
	DefaultStuck = time.Minute
	DefaultFold  = 10 * time.Minute
)

// Result is what a Reducer found.
type Result struct {
	Incidents []Incident    // by their time
	Left      map[Kind]int  // how many of each kind are left out, for lack of room
	Open      int           // waits that go on
	OpenFor   time.Duration // the sum of how long they have lasted so far, without those of LeftOpen
	// LeftOpen is how many waits began while MaxOpen others went on, so that they are not seen before they end.
	LeftOpen int
}
