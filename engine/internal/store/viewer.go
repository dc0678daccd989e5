package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
)

// MaxShownHolders bounds the holders listed in one answer.
const MaxShownHolders = 16

// Views is the part of a step that its descriptions share.
type Views struct {
	Looked int        // objects that those with a common bound have looked at
	found  []*Request // the lists of the last Glance, for reuse
	via    []*Need
}

// View returns a viewer that collects at most limit holders, but none of the flow of except, which may
// be nil.
func (a *PendingWork) View(limit int, except *Request) Viewer {
	return Viewer{work: a, limit: limit, except: except}
}

// Viewer collects holders to describe, at most limit of them.
type Viewer struct {
	work   *PendingWork
	limit  int
	except *Request // and the requests of its flow
	Found  []*Request
	Via    []*Need // their needs at the keys in question
	More   int     // those beyond limit
	visits int
	seen   int  // holders and keys, those that are not added included
	shares bool // what the answers of a step may look at
}

// leastViewed is at how many objects each description looks, however much those before it in
// the same step have looked at.
const leastViewed = 100

// isTired counts one more look and reports whether the Viewer has used up the looks of a step;
// blockers beyond that are not found. All descriptions of a step share one budget, but each has
// leastViewed looks: one answer has several, of blockers and of the expected wait.
func (v *Viewer) isTired() bool {
	*v.work.objects++
	v.seen++
	if !v.shares {
		return v.seen > StepObjects
	}
	v.work.views.Looked++
	return v.seen > leastViewed && v.work.views.Looked > StepObjects
}

// Glance returns a Viewer that reuses the lists of the last one: call Done before the next Glance.
func (a *PendingWork) Glance(except *Request) Viewer {
	return Viewer{
		work: a, limit: MaxShownHolders, except: except, Found: a.views.found[:0], Via: a.views.via[:0], shares: true,
	}
}

// Done makes the lists of v available to the next Glance.
func (v *Viewer) Done() { v.work.views.found, v.work.views.via = v.Found, v.Via }

// Add adds the holder with a need, unless it is of the flow that v leaves out.
func (v *Viewer) Add(m *Need) {
	if v.except != nil && m.Req.SameParty(v.except) {
		return
	}
	if len(v.Found) == v.limit {
		v.More++
		return
	}
	v.Found, v.Via = append(v.Found, m.Req), append(v.Via, m)
}

// At adds the requests that claim n itself in one of modes.
func (v *Viewer) At(n *Node, modes lockmode.Set) {
	for h := n.First; h != nil && v.More < maxMore && !v.isTired(); h = h.Next {
		if modes.Has(h.Mode) {
			v.Add(h)
		}
	}
}

// permits adds the holders of n's permits.
func (v *Viewer) permits(n *Node) {
	for h := n.First; h != nil && v.More < maxMore && !v.isTired(); h = h.Next {
		if h.Counts == interlock.Permits {
			v.Add(h)
		}
	}
}

// maxMore is where the count of holders not shown stops, and maxVisits how many
// keys below one are looked at for them.
const (
	maxMore   = 1000
	maxVisits = 1000
)

// Above adds the requests that claim an ancestor of n in a mode that extends to descendants.
func (v *Viewer) Above(n *Node) {
	for p := n.Parent(); p != nil; p = p.Parent() {
		v.At(p, lockmode.SetOf(lockmode.S, lockmode.SIX, lockmode.X))
	}
}

// Below adds the requests that claim a descendant of n with an intent at n that is one of
// modes. It looks at a bounded number of keys.
func (v *Viewer) Below(n *Node, modes lockmode.Set) {
	if n.Kin == nil {
		return
	}
	for c := n.Kin.Child; c != nil && v.visits < maxVisits && len(v.Found) < v.limit && !v.isTired(); c = c.Kin.Next {
		if c.Modes == 0 { // kept for its notes, or waited for
			continue
		}
		v.visits++
		for h := c.First; h != nil && v.More < maxMore && !v.isTired(); h = h.Next {
			if modes.Has(lockmode.Intent(h.Mode)) {
				v.Add(h)
			}
		}
		v.Below(c, modes)
	}
}

// against adds the holders of claims that exclude a need: on its own key, or else below it.
func (v *Viewer) against(m *Need) {
	v.At(m.Node, lockmode.Conflicts[m.Mode])
	if len(v.Found) == 0 && m.Claimed {
		v.Below(m.Node, lockmode.Conflicts[m.Mode])
	}
}

// maxBehind bounds how far behind follows a line of waiters.
const maxBehind = 16

// behind adds the blockers of a waiter, or of the waiters ahead of it.
func (v *Viewer) behind(w *Request) {
	for at := 0; w != nil && at < maxBehind && len(v.Found) == 0; at++ {
		i := w.Blocker()
		if i < 0 {
			return // nothing blocks it: it is a task that waits for a worker
		}
		m := &w.Needs()[i]
		v.except = w
		v.against(m)
		if len(v.Found) == 0 && m.Counts == interlock.Permits && w.Short(m) == ShortOfPermits {
			v.permits(m.Node)
		}
		w = w.Earlier(m)
	}
}

// Holders describes the holders found, in the order of their fences.
func (v *Viewer) Holders() []interlock.Holder {
	list := make([]interlock.Holder, 0, len(v.Found))
	for i, r := range v.Found {
		list = append(list, r.Holder(v.Via[i].Shown()))
	}
	slices.SortFunc(list, func(a, b interlock.Holder) int { return cmp.Compare(a.Fence, b.Fence) })
	return list
}

// maxETA is as far as an estimate goes.
const maxETA = 365 * 24 * time.Hour

// Cheapest adds holders of as many permits as m lacks: those with the lowest
// priority, of equals the youngest.
func (v *Viewer) Cheapest(m *Need) {
	all := v.work.View(maxMore, v.except)
	all.permits(m.Node)
	slices.SortFunc(all.Via, func(a, b *Need) int {
		return cmp.Or(cmp.Compare(a.Req.Priority, b.Req.Priority), cmp.Compare(b.Req.Fence, a.Req.Fence))
	})
	pool, want := m.Node.Pool(), int64(m.Req.CountOf(m))
	lacks := int64(pool.Used) + int64(pool.Ahead(m.Req)) + want - int64(pool.Policy.Capacity)
	if lacks <= 0 { // it is its group that lacks them
		lacks = want
	}
	for _, h := range all.Via {
		if lacks > 0 {
			lacks -= int64(h.Req.CountOf(h))
			v.Add(h)
		}
	}
}
