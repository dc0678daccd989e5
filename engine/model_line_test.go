package engine_test

import (
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// The line.

func (r *request) score() engine.Time {
	return r.arrived.Add(-time.Duration(r.ask.Priority) * interlock.PriorityBoost)
}

func aheadOf(a, b *request) bool {
	if a.lead != b.lead {
		return a.lead
	}
	if a.score() != b.score() {
		return a.score() < b.score()
	}
	return a.num < b.num
}

// blockers are all that r has to wait for: conflicting holders, and conflicting
// waiters ahead.
func (m *model) blockers(r *request) (list []*request) {
	for _, q := range m.requests {
		if q != r && conflict(q, r) && (q.active() || q.phase == waiting && aheadOf(q, r)) {
			list = append(list, q)
		}
	}
	return list
}

// mayHaveWritten reports whether who holds a may have changed what b is about.
func mayHaveWritten(a, b interlock.Claim) bool {
	switch {
	case a.Key == b.Key, above(b.Key, a.Key):
		return writesBelow(a.Mode)
	case above(a.Key, b.Key):
		return a.Mode == interlock.Exclusive
	}
	return false
}

// changedMeanwhile reports whether a lease that may have written one of r's keys
// ended while r stood in line.
func (m *model) changedMeanwhile(r *request) bool {
	for _, q := range m.requests {
		if q.ns != r.ns || q.endedAt <= r.queuedAt {
			continue
		}
		for _, a := range q.ask.Claims {
			for _, b := range r.ask.Claims {
				if mayHaveWritten(a, b) {
					return true
				}
			}
		}
	}
	return false
}

// note is what somebody left at a key.
type note struct {
	ns    interlock.Namespace
	key   interlock.Key
	fence interlock.Fence
}

// notesAt gives the fences of the notes that a holder is handed: of the last eight
// at each claimed key the sixteen newest, oldest first.
func (m *model) notesAt(ns interlock.Namespace, claims []interlock.Claim) (fences []interlock.Fence) {
	for i, n := range m.notes {
		later := 0
		for _, other := range m.notes[i+1:] {
			if other.ns == n.ns && other.key == n.key {
				later++
			}
		}
		claimed := slices.ContainsFunc(claims, func(c interlock.Claim) bool { return c.Key == n.key })
		if n.ns == ns && claimed && later < 8 {
			fences = append(fences, n.fence)
		}
	}
	return fences[max(0, len(fences)-16):]
}
