package timeline

import (
	"container/list"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// holds finds holds by the keys of their claims: those that go on, and the last ones that have ended.
//
// A hold stands at each of its keys and at each key above them, so a claim meets the holds at its key and below it
// there, and those above it at their own keys.
type holds struct {
	open map[place]*list.List // of *bar
	// The ends, in two generations of endsKept places each: a place that was not used for that long is forgotten.
	ended, older map[place]*[endsPerPlace]end
}

const (
	endsKept     = 1 << 14
	endsPerPlace = 4
	looksAt      = 64 // holds at one place
)

// place is a key as a holder sees it. at means the claim is for just this key, otherwise it is for it or one below.
type place struct {
	ns  interlock.Namespace
	key string
	at  bool
}

// end is a hold that has ended. Its number is 0 for none.
type end struct {
	target
	claims []interlock.Claim
	at     record.Time
}

// target is a hold at the other end of a link.
type target struct {
	number int
	lease  id
	fence  interlock.Fence
	trace  string
	task   interlock.TaskID
}

// target returns a hold as one that others are linked to.
func (b *bar) target() target { return target{b.number, b.id, b.Fence, b.TraceID, b.Task} }

// public returns a hold as results name it.
func (t *target) public(kind string) Target {
	return Target{Kind: kind, Lease: nameOf(t.lease.id), Fence: t.fence, TraceID: t.trace, Task: t.task}
}

// places calls yield with each place of a hold with a claim.
func places(ns interlock.Namespace, key interlock.Key, yield func(place)) {
	yield(place{ns, string(key), true})
	for k := string(key); ; {
		yield(place{ns, k, false})
		i := strings.LastIndexByte(k, '/')
		if i < 0 {
			return
		}
		k = k[:i]
	}
}

// meets calls yield with each place of holds that a claim may conflict with.
func meets(ns interlock.Namespace, key interlock.Key, yield func(place)) {
	yield(place{ns, string(key), false})
	for k := string(key); ; {
		i := strings.LastIndexByte(k, '/')
		if i < 0 {
			return
		}
		k = k[:i]
		yield(place{ns, k, true})
	}
}

func (h *holds) add(b *bar) {
	if h.open == nil {
		h.open = map[place]*list.List{}
	}
	for i := range b.Claims {
		places(b.Namespace, b.Claims[i].Key, func(p place) {
			l := h.open[p]
			if l == nil {
				l = list.New()
				h.open[p] = l
			}
			b.stands = append(b.stands, stand{p, l.PushBack(b)})
		})
	}
}

func (h *holds) remove(b *bar) {
	for _, s := range b.stands {
		l := h.open[s.place]
		if l.Remove(s.element); l.Len() == 0 {
			delete(h.open, s.place)
		}
	}
	b.stands = nil
}

// close notes that a hold has ended, which may have freed its keys for others.
func (h *holds) close(b *bar, at record.Time) {
	e := end{b.target(), b.Claims, at}
	for i := range b.Claims {
		places(b.Namespace, b.Claims[i].Key, func(p place) {
			ends := h.ended[p]
			if ends == nil {
				if ends = h.older[p]; ends == nil {
					ends = &[endsPerPlace]end{}
				}
				if len(h.ended) >= endsKept || h.ended == nil {
					h.ended, h.older = map[place]*[endsPerPlace]end{}, h.ended
				}
				h.ended[p] = ends
			}
			if ends[0].number != e.number {
				copy(ends[1:], ends[:])
				ends[0] = e
			}
		})
	}
}

// endsAt returns the ends at a place, the last one first.
func (h *holds) endsAt(p place) *[endsPerPlace]end {
	if ends := h.ended[p]; ends != nil {
		return ends
	}
	return h.older[p]
}

// last returns the holds that ended last, since a time, among those that conflict with the claims of a lease: those
// that ended at the same moment.
func (h *holds) last(b *bar, since record.Time) (list []target) {
	newest := since
	for i := range b.Claims {
		c := &b.Claims[i]
		meets(b.Namespace, c.Key, func(p place) {
			ends := h.endsAt(p)
			for k := 0; ends != nil && k < endsPerPlace; k++ {
				e := &ends[k]
				if e.number == 0 || e.at < newest || e.lease == b.id || !conflicts(c, e.claims) {
					continue
				}
				if e.at > newest {
					newest, list = e.at, nil
				}
				list = with(list, e.target)
			}
		})
	}
	return list
}

// blockers returns the holds that go on and conflict with the claims of a wait.
func (h *holds) blockers(b *bar) (list []target) {
	for i := range b.Claims {
		c := &b.Claims[i]
		meets(b.Namespace, c.Key, func(p place) {
			l := h.open[p]
			if l == nil {
				return
			}
			for e, looks := l.Front(), 0; e != nil && looks < looksAt; e, looks = e.Next(), looks+1 {
				if o := e.Value.(*bar); o.id != b.id && conflicts(c, o.Claims) {
					list = with(list, o.target())
				}
			}
		})
	}
	return list
}

// find returns the hold with a fence that has a claim on a key, or on one above it.
func (h *holds) find(ns interlock.Namespace, key interlock.Key, fence interlock.Fence) (t target, ok bool) {
	meets(ns, key, func(p place) {
		if l := h.open[p]; l != nil {
			for e, looks := l.Front(), 0; e != nil && looks < looksAt; e, looks = e.Next(), looks+1 {
				if b := e.Value.(*bar); b.Fence == fence {
					t, ok = b.target(), true
				}
			}
		}
		for ends, k := h.endsAt(p), 0; ends != nil && k < endsPerPlace; k++ {
			if ends[k].number != 0 && ends[k].fence == fence {
				t, ok = ends[k].target, true
			}
		}
	})
	return t, ok
}

// with adds a hold once, up to MaxLinks.
func with(list []target, t target) []target {
	for i := range list {
		if list[i].number == t.number {
			return list
		}
	}
	if len(list) == MaxLinks {
		return list
	}
	return append(list, t)
}

// conflicts reports whether a claim excludes one of a hold's. Claims with counts exclude each other here, because
// capacities are not in the events of requests.
func conflicts(c *interlock.Claim, held []interlock.Claim) bool {
	for i := range held {
		h := &held[i]
		switch {
		case c.Key == h.Key:
			if c.Mode.Counts() && h.Mode.Counts() || !compatible(c.Mode, h.Mode) {
				return true
			}
		case isBelow(h.Key, c.Key):
			if !compatible(c.Mode, intentOf(h.Mode)) {
				return true
			}
		case isBelow(c.Key, h.Key):
			if !compatible(intentOf(c.Mode), h.Mode) {
				return true
			}
		}
	}
	return false
}

// compatible is the table at interlock.Mode.
func compatible(a, b interlock.Mode) bool {
	if a.Counts() {
		a = interlock.IntentExclusive
	}
	if b.Counts() {
		b = interlock.IntentExclusive
	}
	if a > b {
		a, b = b, a
	}
	switch a {
	case interlock.IntentShared:
		return b != interlock.Exclusive
	case interlock.IntentExclusive:
		return b == interlock.IntentExclusive
	case interlock.Shared:
		return b == interlock.Shared
	}
	return false
}

// intentOf is what a claim needs of the keys above its own.
func intentOf(m interlock.Mode) interlock.Mode {
	if m == interlock.Shared || m == interlock.IntentShared {
		return interlock.IntentShared
	}
	return interlock.IntentExclusive
}
