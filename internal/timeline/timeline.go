package timeline

import (
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// The bounds of a Reducer.
const (
	MaxBars  = 5_000   // in a result
	MaxMarks = 1_000   // in a result
	MaxOpen  = 100_000 // leases and waits that go on at one moment
	MaxLinks = 8       // of one bar
)

// Kind is the kind of a bar.
type Kind string

// The kinds of bars. The texts are in answers.
const (
	Wait      Kind = "wait"       // in line for the claims
	Hold      Kind = "hold"       // the lease is held
	Attempt   Kind = "attempt"    // the same, by the worker of a task
	Grace     Kind = "grace"      // the last part of a hold, after its hard end
	Parked    Kind = "parked"     // put aside
	LockDelay Kind = "lock_delay" // the holder died, and the keys stay closed for a while
)

// Bar is a stretch of time of one lease or wait.
type Bar struct {
	Kind        Kind
	Namespace   interlock.Namespace
	Agent, Flow string
	Claims      []interlock.Claim // shared with the events: not to be changed
	From, To    record.Time       // To is 0 while it goes on
	// Outcome is how it ended: granted for a wait; resumed, parked, converted; else the reason of the end, such as
	// released or ttl. It is empty while the bar goes on.
	Outcome string
	Fence   interlock.Fence // of holds and attempts
	Purpose string
	TraceID string // 32 hexadecimal digits, or ""
	// Index is the entry where it began, 0 if that was before the first event; EndIndex the one where it ended.
	Index, EndIndex interlock.Index
}

// Mark is a moment.
type Mark struct {
	Kind      string // see markOf
	Namespace interlock.Namespace
	Agent     string
	Key       interlock.Key
	Time      record.Time
	Index     interlock.Index
	Text      string // a sentence; names of agents in it are their own text
}

// The kinds of links.
const (
	BlockedBy = "blocked_by" // from a wait to a hold that it was for
	HandedOn  = "handed_on"  // from a hold to the one that got its keys
)

// Link joins two bars.
type Link struct {
	Kind     string
	From, To int // indexes of Bars
}

// Timeline is the result.
type Timeline struct {
	Lanes []string // the agents of Bars and Marks, in the order in which they appear
	Bars  []Bar    // by their beginning
	Marks []Mark   // in the order of the journal
	Links []Link   // by the wait or the later hold, which comes second in a hand-off
	// MoreBars and MoreMarks are how many were left out, MoreOpen the requests that began while MaxOpen others went on.
	MoreBars, MoreMarks, MoreOpen int
}

// Filter chooses bars and marks. The empty one matches all.
type Filter struct {
	From, To record.Time // what ends before From or begins at To or later is left out; 0: no bound
	Agent    string
	Key      interlock.Key // and the keys below it
}

func (f *Filter) shows(b *Bar) bool {
	return (b.To == 0 || b.To >= f.From) && (f.To == 0 || b.From < f.To) && (f.Agent == "" || f.Agent == b.Agent) &&
		(f.Key == "" || anyBelow(b.Claims, f.Key))
}

func (f *Filter) showsMark(m *Mark) bool {
	return m.Time >= f.From && (f.To == 0 || m.Time < f.To) && (f.Agent == "" || f.Agent == m.Agent) &&
		(f.Key == "" || isBelow(m.Key, f.Key))
}

func anyBelow(claims []interlock.Claim, top interlock.Key) bool {
	for i := range claims {
		if isBelow(claims[i].Key, top) {
			return true
		}
	}
	return false
}

// isBelow reports whether key is top, or below it.
func isBelow(key, top interlock.Key) bool {
	rest, ok := strings.CutPrefix(string(key), string(top))
	return ok && (rest == "" || rest[0] == '/')
}

// traceID returns the trace id of a traceparent, or "".
func traceID(traceparent string) string {
	if parts := strings.Split(traceparent, "-"); len(parts) >= 4 && len(parts[1]) == 32 {
		return parts[1]
	}
	return ""
}
