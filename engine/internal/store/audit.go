package store

import (
	"slices"
	"time"

	"github.com/interlockdev/interlock"
)

const (
	// auditSpan is how long a recorded refusal counts.
	auditSpan = time.Minute
	// auditMost is how many a pattern may have in that time.
	auditMost = 20
)

// RefusalKey is a recorded refusal, as far as it tells one from another.
type RefusalKey struct {
	Session      uint64
	Agent, Actor string
	Operation    string
	Key          interlock.Key
	Code         interlock.Code
	At           Time
}

// sameAs reports whether both are of one caller, operation, key and code.
func (r RefusalKey) sameAs(o RefusalKey) bool {
	r.At = o.At
	return r == o
}

// Refusals are those of a pattern.
type Refusals struct {
	recent  []RefusalKey // the last auditMost that were recorded, oldest first
	LeftOut uint64       // since the last one that was recorded
}

// Admit reports whether a refusal is recorded, and notes it.
func (l *Refusals) Admit(r RefusalKey) bool {
	lately := func(x RefusalKey) bool { return r.At < x.At.Add(auditSpan) }
	full := len(l.recent) == auditMost
	if full && lately(l.recent[0]) ||
		slices.ContainsFunc(l.recent, func(x RefusalKey) bool { return lately(x) && r.sameAs(x) }) {
		l.LeftOut++
		return false
	}
	if full {
		l.recent = slices.Delete(l.recent, 0, 1)
	}
	l.recent = append(l.recent, r)
	return true
}
