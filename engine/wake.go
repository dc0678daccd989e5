package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/record"
)

// Which waiters are granted when something is returned.
//
// A waiter is watched at one key where it is blocked. When a key changes for the better (a
// holder ends, a waiter leaves), only the first watched waiter of each mode there is checked.
// If it is still blocked at this key, so is every one behind it in that mode, because the same
// holders and the same earlier waiters block them. If it is blocked at another key, its watch
// moves there. If nothing blocks it, it is granted. In the last two cases the next one of its
// mode is checked. So a release costs as much as it grants, however long the line is.
//
// Granting never helps other waiters: one that was behind a waiter is now behind a holder. That
// is why only ends and departures call changed. Tokens are different: a request for more than a
// bucket holds together with those ahead waits until they have theirs, which are then consumed.
//
// A waiter with a flow that itself holds or waits for something at the key that would block it
// in another flow is not blocked by the blockers of the others of its mode, so it is watched
// one by one (bucketIndex.watchedAlone).

// candidate is a watched waiter that a change may have helped, and the tree that it was the
// first watched one of. A check that does not find it still blocked there passes the change on
// to the next of that tree.
type candidate struct {
	score Time
	num   uint64
	place *queueEntry
	node  *node
}

// Less orders candidates as they stand in line, so that grants of one step get their fences in
// that order.
func (c candidate) Less(o candidate) bool {
	return c.score < o.score || c.score == o.score && c.num < o.num
}

// markReady makes a watched waiter a candidate, unless it is one.
func (e *State) markReady(p *queueEntry) {
	if p != nil && !p.ready {
		p.ready = true
		e.ready.Push(candidate{p.req.wait.score, p.req.num, p, p.req.needs()[p.need].node})
	}
}

// changed marks those ready that the end of r, or its leaving the line, may have
// helped.
func (e *State) changed(r *request) {
	for way := range r.eachAlternative {
		e.changedAt(way.needs())
	}
}

// changedAt marks the waiters ready that the end of the given needs may have helped.
func (e *State) changedAt(needs []need) {
	if !e.live {
		return
	}
	for i := range needs {
		e.objects++
		for c := range needs[i].facing {
			e.readyClass(c)
		}
	}
}

// facing visits the buckets at the key of a need with waiters that may block its request, or be
// blocked by it.
func (m *need) facing(yield func(*bucket) bool) {
	if m.node.line == nil {
		return
	}
	for c := m.node.line.first; c != nil; c = c.next {
		*m.node.ns.agenda.objects++
		if c.against(m.mode, m.counts) && !yield(c) {
			return
		}
	}
}

// against reports whether the waiters of the bucket and a holder or waiter with these modes may
// block each other.
func (c *bucket) against(mode, counts interlock.Mode) bool {
	return lockmode.Conflicts[mode].Has(c.mode) || counts != 0 && counts == c.counts
}

// readyClass marks the waiters of a bucket ready that a change at its key may have helped.
func (e *State) readyClass(c *bucket) {
	e.objects += 1 + len(c.watchedAlone)
	e.markReady(c.firstWatched())
	for _, p := range c.watchedAlone {
		e.markReady(p)
	}
}

// stepTries bounds the candidates that a step checks in vain, because they are still blocked.
// Priorities that go through a long chain cause very many checks of waiters that cannot be
// granted.
const stepTries = 250

// tryBudgetSpent reports that the step has looked at enough in vain.
func (e *Engine) tryBudgetSpent() bool { return e.tries >= stepTries }

// settle grants all that it can and breaks every cycle that this closes, until nothing is left
// to do or the step has decided enough.
func (e *Engine) settle() {
	if !e.live {
		return
	}
	for {
		switch {
		case len(e.broken) > 0:
			e.dismiss()
		case e.full():
			return
		case e.dismissed.Len() > 0:
			e.dismissMore()
		case e.departed.Len() > 0:
			e.endListeners()
		case e.pendingWork.ns.isRepooling():
			e.repoolMore()
		case e.pendingWork.ns.isUnranked() && !e.rankBudgetSpent():
			e.rerank()
		case e.isSearching() && !e.lookBudgetSpent():
			e.breakCycle()
		case e.doubt.under && !e.lookBudgetSpent():
			e.suspectMore()
		case e.parting.Len() > 0:
			e.part()
		case e.dying.Len() > 0:
			e.sweepEnded()
		case len(e.uneven) > 0 && !e.draining:
			e.shareOut()
		case len(e.ready) > 0 && !e.draining:
			if e.tryBudgetSpent() {
				return
			}
			e.consider(e.ready.Pop())
		case len(e.hungry) > 0 && !e.draining:
			e.dispatch()
		case e.pendingWork.ns.isSpelling():
			e.spellMore(e.pendingWork.ns)
		default:
			return
		}
	}
}

// consider looks at one candidate.
func (e *Engine) consider(c candidate) {
	e.objects++
	e.tries++
	p := c.place
	p.ready = false
	class := p.class
	if r := p.req; r.num == c.num && r.phase == waiting && p.watching {
		m := &r.needs()[p.need]
		if r.task != nil {
			e.objects += taskVisits
			if !e.lookAgain(r.task, int(p.need)) {
				p.setWatching(false)
				e.couldRun(r.task)
			} else if p.watching && p.class == class {
				return
			}
		} else if r.blockedAt(m) {
			e.armPool(c.node.pool())
			if r.hopeless(m) {
				e.leaveLine(r.whole(), record.ByPattern)
			} else if !p.watchedAlone {
				return
			}
		} else if b := r.blocker(); b >= 0 && r.hopeless(&r.needs()[b]) {
			e.leaveLine(r.whole(), record.ByPattern)
		} else if b >= 0 {
			e.watch(r, b)
		} else if r.barrier() == nil {
			p.setWatching(false)
			e.tries--
			e.admit(r.whole().freeWay())
		} else if !e.open(r) && p.watching {
			return // the others of the bucket wait for the same
		}
	}
	e.markReady(class.firstWatched())
}

// blocker returns the index of the first need where r is blocked, or -1.
func (r *request) blocker() int { return r.firstNeed(-1, (*request).blockedAt) }

// firstNeed returns the index of the first of r's needs that holds accepts, or -1. The need at
// index before, if not -1, comes first.
func (r *request) firstNeed(before int, holds func(*request, *need) bool) int {
	needs := r.needs()
	if before >= 0 && holds(r, &needs[before]) {
		return before
	}
	for i := range needs {
		if holds(r, &needs[i]) {
			return i
		}
	}
	return -1
}

// blockedAt reports whether r must wait at one of its needs.
func (r *request) blockedAt(m *need) bool {
	switch m.counts {
	case interlock.Permits:
		if r.short(m) != enough {
			return true
		}
	case interlock.Barrier:
		if !r.gathered(m) {
			return true
		}
	}
	return r.lockedOutAt(m)
}

// lockedOutAt reports whether a holder or an earlier waiter blocks r at one of its needs.
func (r *request) lockedOutAt(m *need) bool {
	n := m.node
	against := lockmode.Conflicts[m.mode]
	return against&n.modes != 0 && r.party.blockedByOthers(n, against) || r.earlier(m) != nil
}

// earlier returns a waiter that goes before r at one of r's needs, or nil.
func (r *request) earlier(m *need) *request {
	against, l := lockmode.Conflicts[m.mode], m.node.line
	if l == nil || l.modes&against == 0 {
		return nil
	}
	for c := l.first; c != nil; c = c.next {
		*m.node.ns.agenda.objects++
		if !against.Has(c.mode) || c.isAsideFor(r) {
			continue
		}
		p := c.first()
		for p != nil && p.req.sameParty(r) {
			p = p.next()
		}
		if p != nil && before(p.req, r) {
			return p.req
		}
	}
	return nil
}

// sameParty reports whether two requests, or a request and itself, are of one flow, so that
// neither ever blocks the other.
func (r *request) sameParty(other *request) bool {
	return r == other || r.party != nil && r.party == other.party
}

// blockedByOthers reports whether other flows hold n in one of modes.
func (p *flowState) blockedByOthers(n *node, modes lockmode.Set) bool {
	own := p.at(n)
	for mode := lockmode.IS; mode <= lockmode.X; mode++ {
		if modes.Has(mode) && *n.granted.Of(mode) > *own.granted.Of(mode) {
			return true
		}
	}
	return false
}

// watch watches r at the need with index i, and nowhere else.
func (e *Engine) watch(r *request, i int) {
	for j := range r.wait.entries() {
		r.wait.entries()[j].setWatching(j == i)
	}
	e.armPool(r.needs()[i].node.pool())
}

// watchAnywhere puts a waiter's watch where it is blocked, or makes it ready when
// nothing blocks it.
func (e *Engine) watchAnywhere(r *request) {
	if r.target != nil || r.follows() {
		return // no key can help it
	}
	if r.task != nil {
		if e.look(r.task, -1) < 0 {
			e.setEligibility(r.task, blockedByOthers) // or nearly
			e.watch(r, 0)
			e.markReady(&r.wait.entries()[0])
		}
		e.yieldToTask(r.task)
		return
	}
	for way := range r.eachAlternative {
		i := way.blocker()
		e.watch(way, max(i, 0))
		if i < 0 {
			e.markReady(&way.wait.entries()[0])
		}
	}
}

// admit grants a waiter one of its alternatives, or offers it the grant if it has no listener.
func (e *Engine) admit(way *request) {
	r := way.whole()
	lease := r.becomes()
	caller := r.listener()
	if s := r.session(); caller == nil && s != nil {
		caller = s.caller
	}
	if r == e.asking {
		caller = nil
	} else if caller == nil && r.isToStart() {
		e.cancelUnattended(r)
		return
	}
	ev := e.event(record.Admitted, r)
	ev.Claims = way.claims()
	ev.Fence, ev.Waited, ev.Offer = e.fence+1, e.now.Sub(r.arrived()), caller == nil && r != e.asking && lease == r && r.share == nil
	ev.Generation, ev.Version = r.nextGeneration(), r.movedUpTo()
	e.emit(ev)
	e.arm(lease)
	e.fireRates(lease)
	if lease == r {
		r.noteGrant(r != e.asking)
	}
	if caller != nil {
		e.describeHanded(lease, &e.effect(caller, Granted).Lease)
	}
	e.heldMore(lease)
}

// heldMore updates the state for a new lease of a flow that also waits: its new edges may close
// a cycle, and where it also waits, it is no longer like others.
func (e *Engine) heldMore(r *request) {
	p := r.party
	if p == nil || len(p.waits) == 0 {
		return
	}
	for i := range r.needs() {
		p.watchAlone(r, &r.needs()[i])
	}
	e.suspect(p, nil)
}

// watchAlone watches one by one those of the flow's places that r, which is new there, would
// block in another flow by one of its needs. Those that something else of the flow would block
// are so already.
func (p *flowState) watchAlone(r *request, m *need) {
	t := p.at(m.node)
	for w := lockmode.IS; w <= lockmode.X; w++ {
		if *t.waits.Of(w) == 0 || !lockmode.Conflicts[w].Has(m.mode) {
			continue
		}
		other := t.against(w) - r.timesAt(m)
		if lockmode.Conflicts[w].Has(w) {
			other-- // the place itself
		}
		if other != 0 { // below 0: it is all there is
			continue
		}
		*m.node.ns.agenda.objects += len(p.waits)
		for _, x := range p.waits {
			if o := x.needAt(m.node); o != nil && o.mode == w {
				x.placeOf(o).watchAlone()
			}
		}
	}
}

// refile watches one by one those of r's places where its flow has something else that would
// block it in another flow, and the flow's other places that r would block.
func (r *request) refile() {
	for way := range r.eachAlternative {
		for i := range way.wait.entries() {
			p, m := &way.wait.entries()[i], &way.needs()[i]
			t := r.party.at(m.node)
			own := 0
			if lockmode.Conflicts[m.mode].Has(m.mode) {
				own = 1
			}
			if t.against(m.mode) > own {
				p.watchAlone()
			}
			if r.party != nil && !p.duplicate {
				r.party.watchAlone(r, m)
			}
		}
	}
}

// placeOf returns the place that belongs to one of r's needs.
func (r *request) placeOf(m *need) *queueEntry {
	for i := range r.needs() {
		if &r.needs()[i] == m {
			return &r.wait.entries()[i]
		}
	}
	return nil
}
