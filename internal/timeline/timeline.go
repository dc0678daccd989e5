package timeline

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/traceparent"
)

// The bounds of a Reducer.
const (
	MaxBars  = 5_000   // in a result
	MaxEnded = 20_000  // in one with Filter.Ended, and as many that end together with the last one; so with the others
	MaxMarks = 1_000   // in a result
	MaxTasks = 1_000   // in a result
	MaxOpen  = 100_000 // leases and waits that go on at one moment; and as many tasks
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
	Fence   interlock.Fence // of all but waits
	Purpose string
	Context
	// Lease is the public name of the lease, which all of its bars have: a hash of its id. A wait has that of the
	// lease that it becomes or converts.
	Lease string
	// Waited means that a wait of the same lease ended where the hold began.
	Waited bool
	// Task and Attempt, from 1 on, are of an attempt; 0 if it began before the first event.
	Task    interlock.TaskID
	Attempt int
	Queue   string // of that task, if its submission was seen
	// Links are the holds that this bar is linked to, also those that are not in the result.
	Links []Target
	// Index is the entry where it began, 0 if that was before the first event; EndIndex the one where it ended.
	Index, EndIndex interlock.Index
}

// Context is what a traceparent tells: the trace, and the span that the request came from. Each is in lower-case
// hexadecimal digits, or empty.
type Context struct{ TraceID, ParentID string }

// Target names a hold at the other end of a link: with BlockedBy the one that a wait was for, with HandedOn the
// one before.
type Target struct {
	Kind    string
	Lease   string
	Fence   interlock.Fence
	TraceID string           // of that hold
	Task    interlock.TaskID // of an attempt
}

// Task is the time from the submission of a task to its end.
type Task struct {
	ID          interlock.TaskID
	Namespace   interlock.Namespace
	Queue, Kind string
	Agent, Flow string // of the submitter
	Context            // of the submission
	Claims      []interlock.Claim
	From, To    record.Time // To is 0 while it goes on
	// Outcome is the state in which it ended (done, dead or cancelled) or namespace_deleted or namespace_moved. A dead
	// task that is taken up again has ended nevertheless.
	Outcome         string
	Attempts        int
	Purpose         string
	Index, EndIndex interlock.Index
}

// Mark is a moment.
type Mark struct {
	Kind      string // see markOf
	Namespace interlock.Namespace
	Agent     string
	Key       interlock.Key
	Fence     interlock.Fence // of a refused check of a fence; 0 otherwise
	Holder    *Target         // the hold that had the fence, if it was seen
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
	Tasks []Task   // likewise
	Marks []Mark   // in the order of the journal
	Links []Link   // by the wait or the later hold, which comes second in a hand-off
	// MoreBars, MoreMarks and MoreTasks are how many were left out, MoreOpen the requests that began while MaxOpen
	// others went on.
	MoreBars, MoreMarks, MoreTasks, MoreOpen int
}

// Filter chooses bars and marks. The empty one matches all.
type Filter struct {
	From, To record.Time // what ends before From or begins at To or later is left out; 0: no bound
	Agent    string
	Key      interlock.Key // and the keys below it
	// Ended leaves out what goes on, and what ended before From or at To or later. So consecutive times have each bar
	// and task once. When a result is full, Reducer.Full asks for an end.
	Ended bool
}

func (f *Filter) shows(from, to record.Time, agent string, claims []interlock.Claim) bool {
	if f.Ended && (to == 0 || f.To != 0 && to >= f.To) {
		return false
	}
	return (to == 0 || to >= f.From) && (f.To == 0 || from < f.To) && (f.Agent == "" || f.Agent == agent) &&
		(f.Key == "" || anyBelow(claims, f.Key))
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

// contextOf reads a traceparent.
func contextOf(text string) Context {
	c, _ := traceparent.Parse(text)
	return Context{c.TraceID, c.ParentID}
}

// nameOf returns the public name of a lease.
func nameOf(lease [16]byte) string {
	sum := sha256.Sum256(lease[:])
	return "l-" + hex.EncodeToString(sum[:12])
}
