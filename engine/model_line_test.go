package engine_test

import (
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// The line.

// wants are the claims that r brings to its keys: a conversion only what its lease
// does not have already.
func (r *request) wants() []interlock.Claim {
	if r.base == nil {
		return r.claims
	}
	return without(r.claims, r.base.claims)
}

// without returns the claims of a that b does not cover. A counted claim is as good as an
// intent.
func without(a, b []interlock.Claim) (list []interlock.Claim) {
	for _, c := range a {
		enough := func(have interlock.Claim) bool {
			return covers(have, c) || !c.Mode.Counts() && covers(interlock.Claim{Key: have.Key, Mode: plain(have.Mode)}, c)
		}
		if !slices.ContainsFunc(b, enough) {
			list = append(list, c)
		}
	}
	return list
}

// score is a place in line; a smaller one is further ahead.
func (m *model) score(r *request) engine.Time {
	return r.arrived.Add(-time.Duration(m.priority(r)) * interlock.PriorityBoost)
}

func (m *model) aheadOf(a, b *request) bool {
	if a.lead != b.lead {
		return a.lead
	}
	if x, y := m.score(a), m.score(b); x != y {
		return x < y
	}
	return a.num < b.num
}

// priority returns the highest base priority among r itself and all that wait for its flow's
// keys, transitively.
func (m *model) priority(r *request) int {
	m.rank()
	if p, waits := m.ranks[r]; waits {
		return p
	}
	return m.inherited(r)
}

// rank works out the priorities of all waiters: the least fixpoint.
func (m *model) rank() {
	if m.ranks != nil && m.rankedAt == m.events {
		return
	}
	m.ranks, m.rankedAt = map[*request]int{}, m.events
	list := m.inPhase(waiting)
	for _, r := range list {
		m.ranks[r] = r.ask.Priority
	}
	for again := true; again; {
		again = false
		for _, r := range list {
			if p := m.inherited(r); p > m.ranks[r] {
				m.ranks[r], again = p, true
			}
		}
	}
}

// inherited returns r's priority given the present values of all others.
func (m *model) inherited(r *request) int {
	p := r.ask.Priority
	if r.member != nil && r.session == nil { // a member without a session inherits no priority
		return p
	}
	if rank, found := m.ranks[r]; found {
		p = max(p, rank)
	}
	var held []*request // by r's flow
	for _, h := range m.requests {
		if h.holds() && h.party() == r.party() {
			held = append(held, h)
		}
	}
	for q, other := range m.ranks {
		waitsFor := func(h *request) bool {
			return conflict(h, q) || q.awaits != nil && m.standing(q.awaits) == h && q.party() != h.party()
		}
		if other > p && slices.ContainsFunc(held, waitsFor) {
			p = other
		}
	}
	return p
}

// blockers returns all requests that r has to wait for, or that include one to wait for.
func (m *model) blockers(r *request) (list []*request) {
	for _, q := range m.requests {
		if r.awaits != nil && q == m.standing(r.awaits) || r.target != nil && q.phase == waiting && r.target.meets(q, r) ||
			r.target == nil && m.inTheWay(q, r, r.wants()) {
			list = append(list, q)
		}
	}
	_, by := m.short(r, r.wants())
	for _, q := range append(by, m.barrierBlockers(r)...) {
		if !slices.Contains(list, q) {
			list = append(list, q)
		}
	}
	return list
}

// inTheWay reports whether q keeps r from some of the claims by a conflict, as a
// holder or ahead in line.
func (m *model) inTheWay(q, r *request, claims []interlock.Claim) bool {
	if q == r || q.ns != r.ns || !q.holds() && (q.phase != waiting || !m.aheadOf(q, r) || m.aside(q, r)) {
		return false
	}
	other := q.party() != r.party() || q.member != nil && r.member != nil // a part is leased once, also to its own member
	return other && anyClash(q.wants(), claims)
}

// free reports whether r may have its keys now.
func (m *model) free(r *request) bool {
	if r.target != nil || r.awaits != nil {
		return m.hopeful && len(m.blockers(r)) == 0
	}
	if r.ask.Any {
		return len(m.freeOnes(r)) > 0
	}
	if _, ok := r.barrier(); ok {
		return m.opens(r)
	}
	return m.freeFor(r, r.wants())
}

// freeOnes are the alternatives that r could have now.
func (m *model) freeOnes(r *request) (list []interlock.Claim) {
	for _, c := range r.claims {
		if m.freeFor(r, []interlock.Claim{c}) {
			list = append(list, c)
		}
	}
	return list
}

func (m *model) freeFor(r *request, claims []interlock.Claim) bool {
	codes, _ := m.short(r, claims)
	return len(codes) == 0 && !slices.ContainsFunc(m.requests, func(q *request) bool { return m.inTheWay(q, r, claims) })
}

// mayHaveWritten reports whether a holder of a may have changed the documents of b. Counted
// claims do not write, unless counted is set.
func mayHaveWritten(a, b interlock.Claim, counted bool) bool {
	switch {
	case a.Mode.Counts() && !counted:
		return false
	case a.Key == b.Key, above(b.Key, a.Key):
		return writesBelow(a.Mode)
	case above(a.Key, b.Key):
		return a.Mode == interlock.Exclusive
	}
	return false
}

// write is a claim that a possible writer has dropped.
type write struct {
	ns     interlock.Namespace
	claims []interlock.Claim
	at     int // after how many events
	by     *request
}

// changedMeanwhile reports whether a possible writer of one of r's keys dropped its claim while
// r stood in line.
func (m *model) changedMeanwhile(r *request, counted bool) bool {
	for _, w := range m.writes {
		if w.ns == r.ns && w.at > r.queuedAt && (w.by == nil || w.by.num != r.num) &&
			mayHaveWrittenOne(w.claims, r.claims, counted) {
			return true
		}
	}
	return false
}

func mayHaveWrittenOne(a, b []interlock.Claim, counted bool) bool {
	for _, x := range a {
		for _, y := range b {
			if mayHaveWritten(x, y, counted) {
				return true
			}
		}
	}
	return false
}

// note is a note left at a key.
type note struct {
	ns    interlock.Namespace
	key   interlock.Key
	fence interlock.Fence
}

// notesAt returns the fences of the notes that a holder is handed: of the last eight
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
