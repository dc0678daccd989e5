package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// What a refused or waiting caller learns about its blockers, and about the expected wait.

// conflict describes what blocks r at its need with index i.
func (e *Engine) conflict(r *request, i int) *Conflict {
	m := &r.needs()[i]
	key := r.claimAt(i).Key
	c := &Conflict{Key: key, Kind: interlock.OtherAgent}
	against := lockmode.Conflicts[m.mode]
	v := e.glance(r)
	defer v.done()
	v.at(m.node, against)
	switch {
	case len(v.found) > 0:
		if !m.claimed {
			c.Kind = interlock.AncestorHeld
		} else if sess := v.found[0].session(); sess != nil && sess == r.session() {
			c.Kind = interlock.SameAgentOtherFlow
		}
	case m.claimed:
		if v.below(m.node, against); len(v.found) > 0 {
			c.Kind = interlock.DescendantHeld
		}
	}
	if len(v.found) > 0 && v.found[0].phase == closed {
		c.Kind = interlock.LockDelayed
	}
	line := r.claimNode(i).line
	c.Queue.Length = line.length()
	c.Queue.ETA = e.expect(m.node, v.found, c.Queue.Length)
	if len(v.found) == 0 && m.counts == interlock.Permits {
		e.shortConflict(c, r, m, &v)
	}
	if len(v.found) == 0 && m.counts == interlock.Barrier {
		c.Kind, c.Queue.ETA = interlock.PartiesMissing, 0
		for _, x := range r.absent(m) {
			v.add(x.barrier())
		}
	}
	if len(v.found) == 0 && c.Kind == interlock.OtherAgent {
		e.lineConflict(c, r, m, &v)
	}
	c.Holders, c.More = v.holders(), v.more
	return c
}

// lineConflict describes r's blockers at m when they are all waiters ahead of it: their number,
// and what blocks the first of them.
func (e *Engine) lineConflict(c *Conflict, r *request, m *need, v *viewer) {
	first := r.earlier(m)
	if first == nil {
		return
	}
	c.Ahead, c.Line = max(1, r.countEarlier(m)), interlock.Key(m.node.key)
	if !m.claimed {
		c.Kind, c.Queue.Length = interlock.AncestorHeld, c.Ahead
	}
	v.behind(first)
	c.Queue.ETA = e.expect(m.node, v.found, c.Ahead)
}

// shortConflict describes what r lacks of a key's permits or tokens, if it does.
func (e *Engine) shortConflict(c *Conflict, r *request, m *need, v *viewer) {
	c.Capacity, c.Group = r.ns.capacity(m.node.key, e.now), r.Group
	switch r.short(m) {
	case shortOfPermits:
		c.Kind = interlock.CapacityUsed
	case shortOfTokens:
		c.Kind = interlock.RateUsed
	default:
		return
	}
	v.except = nil
	if c.Kind == interlock.CapacityUsed {
		v.permits(m.node)
	}
	c.Queue.ETA = e.expectPermits(r, m)
}

// claimNode returns the node of the claim to which need i belongs.
func (r *request) claimNode(i int) *node { return r.ns.nodeAt(string(r.claimAt(i).Key)) }

// viewer collects holders for showing, at most limit of them.
type viewer struct {
	e      *Engine
	limit  int
	except *request // and the requests of its flow
	found  []*request
	via    []*need
	more   int
	visits int
	seen   int  // holders and keys, those that are not added included
	shares bool // what the answers of a step may look at
}

// leastViewed is at how many objects each description looks, however much those before it in
// the same step have looked at.
const leastViewed = 100

// isTired counts one more look and reports whether the viewer has used up the looks of a step;
// blockers beyond that are not found. All descriptions of a step share one budget, but each has
// leastViewed looks: one answer has several, of blockers and of the expected wait.
func (v *viewer) isTired() bool {
	v.e.objects++
	v.seen++
	if !v.shares {
		return v.seen > StepObjects
	}
	v.e.viewed++
	return v.seen > leastViewed && v.e.viewed > StepObjects
}

// glance returns a viewer that reuses its lists: call done before the next glance.
func (e *Engine) glance(except *request) viewer {
	return viewer{e: e, limit: MaxShownHolders, except: except, found: e.found[:0], via: e.via[:0], shares: true}
}

func (v *viewer) done() { v.e.found, v.e.via = v.found, v.via }

func (v *viewer) add(m *need) {
	if v.except != nil && m.req.sameParty(v.except) {
		return
	}
	if len(v.found) == v.limit {
		v.more++
		return
	}
	v.found, v.via = append(v.found, m.req), append(v.via, m)
}

// at adds the requests that claim n itself in one of modes.
func (v *viewer) at(n *node, modes lockmode.Set) {
	for h := n.first; h != nil && v.more < maxMore && !v.isTired(); h = h.next {
		if modes.Has(h.mode) {
			v.add(h)
		}
	}
}

// permits adds the holders of n's permits.
func (v *viewer) permits(n *node) {
	for h := n.first; h != nil && v.more < maxMore && !v.isTired(); h = h.next {
		if h.counts == interlock.Permits {
			v.add(h)
		}
	}
}

// maxMore is where the count of holders not shown stops, and maxVisits how many
// keys below one are looked at for them.
const (
	maxMore   = 1000
	maxVisits = 1000
)

// above adds the requests that claim an ancestor of n in a mode that extends to descendants.
func (v *viewer) above(n *node) {
	for p := n.parent(); p != nil; p = p.parent() {
		v.at(p, lockmode.SetOf(lockmode.S, lockmode.SIX, lockmode.X))
	}
}

// below adds the requests that claim a descendant of n with an intent at n that is one of
// modes. It looks at a bounded number of keys.
func (v *viewer) below(n *node, modes lockmode.Set) {
	if n.kin == nil {
		return
	}
	for c := n.kin.child; c != nil && v.visits < maxVisits && len(v.found) < v.limit && !v.isTired(); c = c.kin.next {
		if c.modes == 0 { // kept for its notes, or waited for
			continue
		}
		v.visits++
		for h := c.first; h != nil && v.more < maxMore && !v.isTired(); h = h.next {
			if modes.Has(lockmode.Intent(h.mode)) {
				v.add(h)
			}
		}
		v.below(c, modes)
	}
}

// against adds the holders of claims that exclude a need: on its own key, or else below it.
func (v *viewer) against(m *need) {
	v.at(m.node, lockmode.Conflicts[m.mode])
	if len(v.found) == 0 && m.claimed {
		v.below(m.node, lockmode.Conflicts[m.mode])
	}
}

// maxBehind bounds how far behind follows a line of waiters.
const maxBehind = 16

// behind adds the blockers of a waiter, or of the waiters ahead of it.
func (v *viewer) behind(w *request) {
	for at := 0; w != nil && at < maxBehind && len(v.found) == 0; at++ {
		i := w.blocker()
		if i < 0 {
			return // nothing blocks it: it is a task that waits for a worker
		}
		m := &w.needs()[i]
		v.except = w
		v.against(m)
		if len(v.found) == 0 && m.counts == interlock.Permits && w.short(m) == shortOfPermits {
			v.permits(m.node)
		}
		w = w.earlier(m)
	}
}

func (v *viewer) holders() []interlock.Holder {
	list := make([]interlock.Holder, 0, len(v.found))
	for i, r := range v.found {
		list = append(list, v.e.holder(r, v.via[i].shown()))
	}
	slices.SortFunc(list, func(a, b interlock.Holder) int { return cmp.Compare(a.Fence, b.Fence) })
	return list
}

// holder describes r's holder as others see it.
func (e *Engine) holder(r *request, c interlock.Claim) interlock.Holder {
	h := interlock.Holder{
		Agent: r.agentName(), Flow: r.flowName(), Purpose: r.purpose, Key: c.Key, Mode: c.Mode, Count: c.Count,
		Fence: r.fence, Held: e.now.Sub(r.granted), ExpiresIn: max(0, e.endOf(r).Sub(e.now)),
	}
	if r.phase == inGrace || r.phase == closed {
		h.EndedBy = r.reason.String()
	}
	h.Yield = e.yield(r)
	beat := r.beat()
	if s := r.session(); s != nil {
		h.Session = s.name
		beat = max(beat, s.renewed)
	}
	h.Progress, _ = r.lastProgress()
	h.HeartbeatAge = max(0, e.now.Sub(beat))
	h.Parking = e.parking(r)
	switch {
	case r.phase == parked:
		h.Liveness = interlock.LiveParked
	case r.phase == closed:
		h.Liveness = interlock.Closed
	case r.phase == inGrace:
		h.Liveness = interlock.LiveGrace
	case r.phase == offered:
		h.Liveness = interlock.Offered
	case h.HeartbeatAge >= softAt(r.TTL):
		h.Liveness = interlock.Suspect
	case e.stateOf(r) == interlock.Soft:
		h.Liveness = interlock.LiveSoft
	default:
		h.Liveness = interlock.Live
	}
	return h
}

// ticket describes r's place in line: where it has most waiters ahead of it that
// it conflicts with.
func (e *Engine) ticket(r *request) interlock.Ticket {
	t := interlock.Ticket{ID: r.id, Position: 1}
	if r.target != nil {
		return t // it stands in no line
	}
	at := 0
	for i := range r.needs() {
		m := &r.needs()[i]
		if !m.claimed {
			continue
		}
		if p := 1 + r.countEarlier(m); p > t.Position || t.Length == 0 {
			t.Position, t.Length, at = p, m.node.line.length(), i
		}
	}
	t.ETA = e.eta(r, &r.needs()[at], t.Position-1)
	if b := r.blocker(); b >= 0 && !r.needs()[b].claimed { // an ancestor blocks it first
		m := &r.needs()[b]
		t.ETA = max(t.ETA, e.eta(r, m, r.countEarlier(m)))
	}
	return t
}

// countEarlier counts others' waiters ahead of r that may block one of its needs.
func (r *request) countEarlier(m *need) (n int) {
	l := m.node.line
	if l == nil {
		return 0
	}
	for c := l.first; c != nil; c = c.next {
		if c.against(m.mode, m.counts) && !c.isAsideFor(r) {
			n += c.countBefore(r)
		}
	}
	if t := r.party.at(m.node); t.waiting() < 2 {
		return n
	}
	for _, w := range r.party.waits {
		if o := w.needAt(m.node); o != nil && w != r && before(w, r) && lockmode.Conflicts[m.mode].Has(o.mode) {
			n -= int(w.placeOf(o).heads())
		}
	}
	return n
}

// maxETA is as far as an estimate goes.
const maxETA = 365 * 24 * time.Hour

// eta estimates how long r will wait at m when ahead waiters go first: the rest of the present
// holders' usual time, plus the usual time for each of those ahead. Where nothing was observed,
// a holder's ttl stands for the usual time. The arrival of a barrier's absent parties cannot be
// estimated: that is 0.
func (e *Engine) eta(r *request, m *need, ahead int) time.Duration {
	v := e.glance(r)
	defer v.done()
	v.against(m)
	if len(v.found) == 0 && m.counts == interlock.Permits {
		return e.expectPermits(r, m)
	}
	if m.counts == interlock.Barrier {
		if len(v.found) == 0 {
			return 0
		}
		ahead = 0
	}
	if len(v.found) == 0 {
		v.behind(r.earlier(m))
	}
	return e.expect(m.node, v.found, ahead)
}

// expect is eta for a key that is in given hands.
func (e *Engine) expect(n *node, holders []*request, ahead int) time.Duration {
	usual := n.ns.holds[keypath.Class(n.key)]
	var left time.Duration
	for _, h := range holders {
		if usual == 0 {
			usual = h.TTL
		}
		if h.phase == inGrace || h.phase == closed {
			left = max(left, e.endOf(h).Sub(e.now))
		} else {
			left = max(left, usual-e.now.Sub(h.granted), usual/8)
		}
	}
	if usual == 0 {
		usual = interlock.DefaultTTL
	}
	usual = min(usual, maxETA/time.Duration(max(1, ahead)))
	return min(maxETA, max(0, left)+time.Duration(ahead)*usual)
}

// expectPermits estimates when r will have its permits and tokens: those of a
// capacity come back evenly over the usual time of a hold, tokens at their rate.
func (e *Engine) expectPermits(r *request, m *need) (eta time.Duration) {
	p := m.node.pool()
	if p.policy == nil {
		return 0
	}
	wanted := int64(min(p.ahead(r)+uint64(r.countOf(m)), interlock.MaxCount))
	if capacity := int64(p.policy.Capacity); capacity > 0 {
		usual := m.node.ns.holds[keypath.Class(m.node.key)]
		for h := m.node.first; h != nil && usual == 0; h = h.next {
			if e.objects++; h.counts == interlock.Permits {
				usual = h.req.TTL
			}
		}
		if usual == 0 {
			usual = interlock.DefaultTTL
		}
		back := func(missing, of int64) time.Duration {
			if missing <= 0 {
				return 0
			}
			return min(maxETA, max(usual/8, usual/time.Duration(of)*time.Duration(min(missing, int64(maxETA)/int64(usual)))))
		}
		eta = back(int64(min(p.used, interlock.MaxCount))+wanted-capacity, capacity)
		if g := r.groupAt(m); g != unlisted && p.policy.Groups[g].Max > 0 {
			most := int64(p.policy.Groups[g].Max)
			mine := int64(min(p.groups[g]+p.aheadIn(g, r)+uint64(r.countOf(m)), interlock.MaxCount))
			eta = max(eta, back(mine-most, most))
		}
		if eta == 0 && r.short(m) == shortOfPermits { // the rest is reserved for other groups
			eta = back(int64(r.countOf(m)), capacity)
		}
	}
	if p.policy.Rate > 0 {
		tick := p.policy.tick()
		wait := max(0, p.full.Sub(e.now)) + tick*time.Duration(min(wanted, int64(maxETA/tick))-int64(p.policy.burst()))
		eta = max(eta, wait)
	}
	return min(maxETA, eta)
}

// maxClasses bounds the classes of keys with separate hold times.
const maxClasses = 1024

// observe learns from a hold that ended: an average in which the last eight
// weigh most.
func (s *namespace) observe(key interlock.Key, hold time.Duration) {
	class := keypath.Class(string(key))
	old, known := s.holds[class]
	if !known && len(s.holds) == maxClasses {
		return
	}
	now := max(1, hold)
	if known {
		now = max(1, old+(hold-old)/8)
	}
	if now != old {
		s.holds[class] = now
	}
}
