package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// What a refused or waiting caller learns about its blockers, and about the expected wait.

// conflict describes what blocks r at its need with index i.
func (e *Engine) conflict(r *store.Request, i int) *store.Conflict {
	m := &r.Needs()[i]
	key := r.ClaimAt(i).Key
	c := &store.Conflict{Conflict: interlock.Conflict{Key: key, Kind: interlock.OtherAgent}}
	against := lockmode.Conflicts[m.Mode]
	v := e.glance(r)
	defer v.done()
	v.at(m.Node, against)
	switch {
	case len(v.found) > 0:
		if !m.Claimed {
			c.Kind = interlock.AncestorHeld
		} else if sess := v.found[0].Session(); sess != nil && sess == r.Session() {
			c.Kind = interlock.SameAgentOtherFlow
		}
	case m.Claimed:
		if v.below(m.Node, against); len(v.found) > 0 {
			c.Kind = interlock.DescendantHeld
		}
	}
	if len(v.found) > 0 && v.found[0].Phase == store.Closed {
		c.Kind = interlock.LockDelayed
	}
	line := r.ClaimNode(i).Line
	c.Queue.Length = line.Length()
	c.Queue.ETA = e.expect(m.Node, v.found, c.Queue.Length)
	if len(v.found) == 0 && m.Counts == interlock.Permits {
		e.shortConflict(c, r, m, &v)
	}
	if len(v.found) == 0 && m.Counts == interlock.Barrier {
		c.Kind, c.Queue.ETA = interlock.PartiesMissing, 0
		for _, x := range r.Absent(m) {
			v.add(x.Barrier())
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
func (e *Engine) lineConflict(c *store.Conflict, r *store.Request, m *store.Need, v *viewer) {
	first := r.Earlier(m)
	if first == nil {
		return
	}
	c.Ahead, c.Line = max(1, r.CountEarlier(m)), interlock.Key(m.Node.Key)
	if !m.Claimed {
		c.Kind, c.Queue.Length = interlock.AncestorHeld, c.Ahead
	}
	v.behind(first)
	c.Queue.ETA = e.expect(m.Node, v.found, c.Ahead)
}

// shortConflict describes what r lacks of a key's permits or tokens, if it does.
func (e *Engine) shortConflict(c *store.Conflict, r *store.Request, m *store.Need, v *viewer) {
	c.Capacity, c.Group = r.NS.Capacity(m.Node.Key, e.Clock), r.Group
	switch r.Short(m) {
	case store.ShortOfPermits:
		c.Kind = interlock.CapacityUsed
	case store.ShortOfTokens:
		c.Kind = interlock.RateUsed
	default:
		return
	}
	v.except = nil
	if c.Kind == interlock.CapacityUsed {
		v.permits(m.Node)
	}
	c.Queue.ETA = e.expectPermits(r, m)
}

// viewer collects holders for showing, at most limit of them.
type viewer struct {
	e      *Engine
	limit  int
	except *store.Request // and the requests of its flow
	found  []*store.Request
	via    []*store.Need
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
	v.e.Visited++
	v.seen++
	if !v.shares {
		return v.seen > store.StepObjects
	}
	v.e.viewed++
	return v.seen > leastViewed && v.e.viewed > store.StepObjects
}

// glance returns a viewer that reuses its lists: call done before the next glance.
func (e *Engine) glance(except *store.Request) viewer {
	return viewer{e: e, limit: MaxShownHolders, except: except, found: e.found[:0], via: e.via[:0], shares: true}
}

func (v *viewer) done() { v.e.found, v.e.via = v.found, v.via }

func (v *viewer) add(m *store.Need) {
	if v.except != nil && m.Req.SameParty(v.except) {
		return
	}
	if len(v.found) == v.limit {
		v.more++
		return
	}
	v.found, v.via = append(v.found, m.Req), append(v.via, m)
}

// at adds the requests that claim n itself in one of modes.
func (v *viewer) at(n *store.Node, modes lockmode.Set) {
	for h := n.First; h != nil && v.more < maxMore && !v.isTired(); h = h.Next {
		if modes.Has(h.Mode) {
			v.add(h)
		}
	}
}

// permits adds the holders of n's permits.
func (v *viewer) permits(n *store.Node) {
	for h := n.First; h != nil && v.more < maxMore && !v.isTired(); h = h.Next {
		if h.Counts == interlock.Permits {
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
func (v *viewer) above(n *store.Node) {
	for p := n.Parent(); p != nil; p = p.Parent() {
		v.at(p, lockmode.SetOf(lockmode.S, lockmode.SIX, lockmode.X))
	}
}

// below adds the requests that claim a descendant of n with an intent at n that is one of
// modes. It looks at a bounded number of keys.
func (v *viewer) below(n *store.Node, modes lockmode.Set) {
	if n.Kin == nil {
		return
	}
	for c := n.Kin.Child; c != nil && v.visits < maxVisits && len(v.found) < v.limit && !v.isTired(); c = c.Kin.Next {
		if c.Modes == 0 { // kept for its notes, or waited for
			continue
		}
		v.visits++
		for h := c.First; h != nil && v.more < maxMore && !v.isTired(); h = h.Next {
			if modes.Has(lockmode.Intent(h.Mode)) {
				v.add(h)
			}
		}
		v.below(c, modes)
	}
}

// against adds the holders of claims that exclude a need: on its own key, or else below it.
func (v *viewer) against(m *store.Need) {
	v.at(m.Node, lockmode.Conflicts[m.Mode])
	if len(v.found) == 0 && m.Claimed {
		v.below(m.Node, lockmode.Conflicts[m.Mode])
	}
}

// maxBehind bounds how far behind follows a line of waiters.
const maxBehind = 16

// behind adds the blockers of a waiter, or of the waiters ahead of it.
func (v *viewer) behind(w *store.Request) {
	for at := 0; w != nil && at < maxBehind && len(v.found) == 0; at++ {
		i := w.Blocker()
		if i < 0 {
			return // nothing blocks it: it is a task that waits for a worker
		}
		m := &w.Needs()[i]
		v.except = w
		v.against(m)
		if len(v.found) == 0 && m.Counts == interlock.Permits && w.Short(m) == store.ShortOfPermits {
			v.permits(m.Node)
		}
		w = w.Earlier(m)
	}
}

func (v *viewer) holders() []interlock.Holder {
	list := make([]interlock.Holder, 0, len(v.found))
	for i, r := range v.found {
		list = append(list, v.e.holder(r, v.via[i].Shown()))
	}
	slices.SortFunc(list, func(a, b interlock.Holder) int { return cmp.Compare(a.Fence, b.Fence) })
	return list
}

// holder describes r's holder as others see it.
func (e *Engine) holder(r *store.Request, c interlock.Claim) interlock.Holder {
	h := interlock.Holder{
		Agent: r.AgentName(), Flow: r.FlowName(), Purpose: r.Purpose, Key: c.Key, Mode: c.Mode, Count: c.Count,
		Fence: r.Fence, Held: e.Clock.Sub(r.Granted), ExpiresIn: max(0, e.endOf(r).Sub(e.Clock)),
	}
	if r.Phase == store.InGrace || r.Phase == store.Closed {
		h.EndedBy = r.Reason.String()
	}
	h.Yield = e.yield(r)
	beat := r.Beat()
	if s := r.Session(); s != nil {
		h.Session = s.Name
		beat = max(beat, s.Renewed)
	}
	h.Progress, _ = r.LastProgress()
	h.HeartbeatAge = max(0, e.Clock.Sub(beat))
	h.Parking = e.parking(r)
	switch {
	case r.Phase == store.Parked:
		h.Liveness = interlock.LiveParked
	case r.Phase == store.Closed:
		h.Liveness = interlock.Closed
	case r.Phase == store.InGrace:
		h.Liveness = interlock.LiveGrace
	case r.Phase == store.Offered:
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
func (e *Engine) ticket(r *store.Request) interlock.Ticket {
	t := interlock.Ticket{ID: r.ID, Position: 1}
	if r.Target != nil {
		return t // it stands in no line
	}
	at := 0
	for i := range r.Needs() {
		m := &r.Needs()[i]
		if !m.Claimed {
			continue
		}
		if p := 1 + r.CountEarlier(m); p > t.Position || t.Length == 0 {
			t.Position, t.Length, at = p, m.Node.Line.Length(), i
		}
	}
	t.ETA = e.eta(r, &r.Needs()[at], t.Position-1)
	if b := r.Blocker(); b >= 0 && !r.Needs()[b].Claimed { // an ancestor blocks it first
		m := &r.Needs()[b]
		t.ETA = max(t.ETA, e.eta(r, m, r.CountEarlier(m)))
	}
	return t
}

// maxETA is as far as an estimate goes.
const maxETA = 365 * 24 * time.Hour

// eta estimates how long r will wait at m when ahead waiters go first: the rest of the present
// holders' usual time, plus the usual time for each of those ahead. Where nothing was observed,
// a holder's ttl stands for the usual time. The arrival of a barrier's absent parties cannot be
// estimated: that is 0.
func (e *Engine) eta(r *store.Request, m *store.Need, ahead int) time.Duration {
	v := e.glance(r)
	defer v.done()
	v.against(m)
	if len(v.found) == 0 && m.Counts == interlock.Permits {
		return e.expectPermits(r, m)
	}
	if m.Counts == interlock.Barrier {
		if len(v.found) == 0 {
			return 0
		}
		ahead = 0
	}
	if len(v.found) == 0 {
		v.behind(r.Earlier(m))
	}
	return e.expect(m.Node, v.found, ahead)
}

// expect is eta for a key that is in given hands.
func (e *Engine) expect(n *store.Node, holders []*store.Request, ahead int) time.Duration {
	usual := n.NS.Holds[keypath.Class(n.Key)]
	var left time.Duration
	for _, h := range holders {
		if usual == 0 {
			usual = h.TTL
		}
		if h.Phase == store.InGrace || h.Phase == store.Closed {
			left = max(left, e.endOf(h).Sub(e.Clock))
		} else {
			left = max(left, usual-e.Clock.Sub(h.Granted), usual/8)
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
func (e *Engine) expectPermits(r *store.Request, m *store.Need) (eta time.Duration) {
	p := m.Node.Pool()
	if p.Policy == nil {
		return 0
	}
	wanted := int64(min(p.Ahead(r)+uint64(r.CountOf(m)), interlock.MaxCount))
	if capacity := int64(p.Policy.Capacity); capacity > 0 {
		usual := m.Node.NS.Holds[keypath.Class(m.Node.Key)]
		for h := m.Node.First; h != nil && usual == 0; h = h.Next {
			if e.Visited++; h.Counts == interlock.Permits {
				usual = h.Req.TTL
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
		eta = back(int64(min(p.Used, interlock.MaxCount))+wanted-capacity, capacity)
		if g := r.GroupAt(m); g != store.Unlisted && p.Policy.Groups[g].Max > 0 {
			most := int64(p.Policy.Groups[g].Max)
			mine := int64(min(p.Groups[g]+p.AheadIn(g, r)+uint64(r.CountOf(m)), interlock.MaxCount))
			eta = max(eta, back(mine-most, most))
		}
		if eta == 0 && r.Short(m) == store.ShortOfPermits { // the rest is reserved for other groups
			eta = back(int64(r.CountOf(m)), capacity)
		}
	}
	if p.Policy.Rate > 0 {
		tick := p.Policy.Tick()
		wait := max(0, p.Full.Sub(e.Clock)) + tick*time.Duration(min(wanted, int64(maxETA/tick))-int64(p.Policy.BurstLimit()))
		eta = max(eta, wait)
	}
	return min(maxETA, eta)
}
