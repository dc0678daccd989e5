package merger

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/merge/train"
)

// A submission with a priority goes before those without one that wait. Two rules bound that. It passes none that came
// more than priority times interlock.PriorityBoost before it, so that none is passed for ever. And it passes none in a
// chain that is being checked, so that no check is lost. It never passes another one with a priority, or its own base.
//
// Its place is durable: Record.Place is that of the first one that it has passed, and Record.Ahead its own.

// comparePlaces orders two submissions of a line.
func comparePlaces(a, b *Record) int { return train.ComparePlaces(a.Place, a.Ahead, b.Place, b.Ahead) }

// mayHavePriority reports whether a credential may submit with a priority. Without credentials every agent may.
func (m *Merger) mayHavePriority(principal string) bool {
	return principal == "" || principal == m.principal || slices.Contains(m.PriorityFor, "*") ||
		slices.Contains(m.PriorityFor, principal)
}

// notPrior is the outcome of a submission with a priority that its credential may not use.
func notPrior(principal string) *Outcome {
	return &Outcome{
		Reason: WhyPolicy, Cause: CausePriority,
		Message: fmt.Sprintf("Credential %q may not submit with a priority: submit without, or ask the operator to start "+
			"the merger with `--priority-for %s`.", principal, principal),
	}
}

// goAhead sets the place that a submission's priority is worth. own is the fence of its task's first lease, and
// replaced the submission that it supersedes, if any. It returns the first one that it passes, or nil.
func (l *line) goAhead(r *Record, own uint64, replaced string) (first *Record) {
	if r.Priority <= 0 {
		return nil
	}
	line := make([]*Record, 0, len(l.records))
	for _, e := range l.records {
		if e.record.ID != replaced && e.record.ID != r.ID {
			line = append(line, &e.record)
		}
	}
	slices.SortFunc(line, comparePlaces)
	checking := l.train.Checking()
	for _, o := range slices.Backward(line) {
		if comparePlaces(o, r) > 0 {
			continue // it stands before that one already
		}
		boost := time.Duration(r.Priority) * interlock.PriorityBoost
		early := time.Duration(r.Submitted-o.Submitted)*time.Second > boost
		if o.Priority > 0 || early || checking[train.ID(o.Task)] || o.ID == r.On || l.awaitsBehind(o.Place) {
			break
		}
		first = o
	}
	if first != nil {
		r.Place, r.Ahead = first.Place, own
	}
	return first
}

// awaitsBehind reports whether a submission behind a place was in line before the seat was taken, and is not back.
func (l *line) awaitsBehind(place uint64) bool {
	for _, at := range l.awaited {
		if at > place {
			return true
		}
	}
	return false
}
