package history

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
)

// observedLease is a lease that occurs in an answer.
type observedLease struct {
	fence  interlock.Fence
	lease  string // its id, if its holder got the answer
	claims []Claim
	ttl    time.Duration
	floor  interlock.Index // it was granted after this one
	ends   []*Op           // what its holder sent to end it

	begun, ended bool
	endedAt      interlock.Index // of the answer that showed it
	told         bool            // its holder got the answer, before now
	alive        time.Duration   // the last sign of life that was acknowledged
}

// leaseModel is the holders and their leases, while the answers pass in the order of their
// indexes.
type leaseModel struct {
	*verdict
	byFence map[interlock.Fence]*observedLease
	byLease map[string]*observedLease
	waiting []*observedLease // not yet begun, by fence
	live    map[*observedLease]bool
}

// leases feeds the answers to the model. Grants happen in the order of their fences: when an
// answer shows one, all with lower fences have happened. An end without an answer happens when
// another answer shows that it must have, if it may.
func (v *verdict) leases() {
	m := &leaseModel{
		verdict: v, byFence: map[interlock.Fence]*observedLease{}, byLease: map[string]*observedLease{},
		live: map[*observedLease]bool{},
	}
	m.gather()
	for _, op := range v.answered() {
		m.step(op)
	}
}

// gather finds every lease that an answer mentions.
func (m *leaseModel) gather() {
	floor := floors(m.ops)
	asked := map[string]*Op{}
	for _, op := range m.ops {
		if op.Kind == Acquire {
			asked[op.ID] = op
		}
	}
	find := func(f interlock.Fence) *observedLease {
		h := m.byFence[f]
		if h == nil {
			h = &observedLease{fence: f}
			m.byFence[f] = h
		}
		return h
	}
	for _, op := range m.ops {
		if g := op.Granted; g != nil {
			h := find(g.Fence)
			switch {
			case h.lease != "" && h.lease != g.Lease:
				m.problem("fence %d was given out twice: for %s and in %v", g.Fence, h.lease, op)
			case m.byLease[g.Lease] != nil && m.byLease[g.Lease] != h:
				m.problem("lease %s has two fences: %d and in %v", g.Lease, m.byLease[g.Lease].fence, op)
			}
			h.lease, h.claims, h.ttl = g.Lease, g.Claims, g.TTL
			m.byLease[g.Lease] = h
			if op.Kind != Renew {
				h.floor = max(h.floor, floor[op])
			}
		}
		for _, shown := range op.Holders {
			h := find(shown.Fence)
			if by := asked[shown.Request]; by != nil {
				h.floor = max(h.floor, floor[by])
				if len(h.claims) == 0 {
					h.claims, h.ttl = by.Claims, by.TTL
				}
			} else if shown.Request != "" {
				m.problem("%v shows a holder that nobody asked for: %s", op, shown.Request)
			}
		}
	}
	for _, op := range m.ops {
		if h := m.byLease[op.Lease]; h != nil && (op.Kind == Release || op.Kind == Ack) {
			h.ends = append(h.ends, op)
		}
	}
	m.waiting = slices.SortedFunc(
		maps.Values(m.byFence), func(a, b *observedLease) int { return cmp.Compare(a.fence, b.fence) },
	)
}

// step compares one answer with the model.
func (m *leaseModel) step(op *Op) {
	for _, shown := range op.Holders {
		m.holds(m.byFence[shown.Fence], op)
	}
	if op.Granted != nil {
		h := m.byFence[op.Granted.Fence]
		m.holds(h, op)
		h.told, h.alive = true, max(h.alive, op.Call)
	}
	h := m.byLease[op.Lease]
	switch {
	case op.Kind == Look:
		m.looked(op)
	case op.Kind == CheckFence && op.Code == interlock.CodeFenced:
		if h := m.byFence[op.Fence]; h != nil {
			m.gone(h, op)
		}
	case op.Kind == CheckFence && op.Code == "":
		m.holds(m.byFence[op.Fence], op)
	case op.Kind == Acquire && op.Code == interlock.CodeHeld && op.exact(): // repeated, it names the present blockers
		if !slices.ContainsFunc(op.Holders, func(s Holder) bool { return conflict(op.Claims, []Claim{s.Claim}) }) &&
			!m.lineBefore(op) {
			m.problem("refused, and nobody was in the way: %v", op)
		}
	case h == nil:
	case op.OK() && op.exact():
		switch op.Kind {
		case Release, Ack:
			if m.begin(h.fence, op); h.ended {
				m.problem("what had ended was given back: fence %d by %v", h.fence, op)
			}
			m.end(h, op)
		case Commit:
			m.holds(h, op)
		}
	case op.OK() && (op.Kind == Release || op.Kind == Ack):
		m.begin(h.fence, op)
		m.end(h, op)
	case over(op.Code):
		m.gone(h, op)
	}
}

// over reports whether a refusal means that a lease is no more.
func over(c interlock.Code) bool {
	switch c {
	case interlock.CodeExpired, interlock.CodeTaken, interlock.CodeRevoked, interlock.CodeReleased,
		interlock.CodeTaskMoved:
		return true
	}
	return false
}

// holds takes an answer that shows a lease as held. An answer that ends a wait at its limit
// shows the holders as they were then: later in the same entry one may have ended, too.
func (m *leaseModel) holds(h *observedLease, op *Op) {
	if h == nil {
		m.problem("a fence counts that nobody was given: %v", op)
		return
	}
	m.begin(h.fence, op)
	if h.ended && !(op.Code == interlock.CodeWaitLimit && h.endedAt == op.Index) {
		m.problem("what had ended is held again: fence %d in %v", h.fence, op)
	}
}

// begin grants everything up to a fence: at the latest now.
func (m *leaseModel) begin(fence interlock.Fence, op *Op) {
	for ; len(m.waiting) > 0 && m.waiting[0].fence <= fence; m.waiting = m.waiting[1:] {
		h := m.waiting[0]
		if h.floor >= op.Index {
			m.problem(
				"a stale fence: %d was asked for after index %d was known, and %v shows it or a higher one", h.fence, h.floor, op,
			)
		}
		for other := range m.live {
			if !conflict(h.claims, other.claims) {
				continue
			}
			if !m.mayEnd(other, op) {
				m.problem("two holders: fence %d was granted while %d was held, by %v", h.fence, other.fence, op)
			}
			m.end(other, op)
		}
		h.begun = true
		m.live[h] = true
	}
}

func (m *leaseModel) end(h *observedLease, op *Op) {
	h.ended, h.endedAt = true, op.Index
	delete(m.live, h)
}

// gone takes an answer that shows that a lease has ended.
func (m *leaseModel) gone(h *observedLease, op *Op) {
	if m.begin(h.fence, op); h.ended {
		return
	}
	if !m.mayEnd(h, op) {
		m.problem(
			"ended before its time: fence %d, last acknowledged at %v with a ttl of %v, by %v", h.fence, h.alive, h.ttl, op,
		)
	}
	m.end(h, op)
}

// mayEnd reports whether a lease can have ended by the time of an answer without any report:
// its holder sent something to that end, its ttl was over, or its holder does not know of it,
// so that it was an offer or went to a client that had left.
func (m *leaseModel) mayEnd(h *observedLease, op *Op) bool {
	if !h.told || op.Return >= h.alive+h.ttl {
		return true
	}
	return slices.ContainsFunc(h.ends, func(end *Op) bool {
		return end.Call < op.Return && (end.Open() || end.OK() && !end.exact())
	})
}

// looked takes an answer that lists the holders of a key: all of them, unless they are too
// many.
func (m *leaseModel) looked(op *Op) {
	if op.More > 0 {
		return
	}
	var live []*observedLease
	for h := range m.live {
		if slices.ContainsFunc(h.claims, func(c Claim) bool { return c.Key == op.Key }) {
			live = append(live, h)
		}
	}
	slices.SortFunc(live, func(a, b *observedLease) int { return cmp.Compare(a.fence, b.fence) })
	for _, h := range live {
		if !slices.ContainsFunc(op.Holders, func(s Holder) bool { return s.Fence == h.fence }) {
			m.gone(h, op)
		}
	}
}

// lineBefore reports whether there may have been a waiter before a request that was refused. No
// answer identifies it.
func (m *leaseModel) lineBefore(op *Op) bool {
	return slices.ContainsFunc(m.ops, func(w *Op) bool {
		return w.Wait && w != op && w.Call < op.Return && w.Return > op.Call && conflict(w.Claims, op.Claims)
	})
}
