package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// meets is the table of modes, written down once more: which two may be in different
// hands on one key.
//
//	IS IX S SIX X
var meets = [6][6]bool{
	interlock.IntentShared:          {1: true, 2: true, 3: true, 4: true},
	interlock.IntentExclusive:       {1: true, 2: true},
	interlock.Shared:                {1: true, 3: true},
	interlock.SharedIntentExclusive: {1: true},
}

func lockOf(m interlock.Mode) interlock.Mode {
	if m.Counts() {
		return interlock.IntentExclusive
	}
	return m
}

// intentOf returns the intent of a claim on the keys above its own.
func intentOf(m interlock.Mode) interlock.Mode {
	if m == interlock.Shared || m == interlock.IntentShared {
		return interlock.IntentShared
	}
	return interlock.IntentExclusive
}

// above reports whether key a is an ancestor of b.
func above(a, b interlock.Key) bool {
	return len(a) < len(b) && b[len(a)] == '/' && strings.HasPrefix(string(b), string(a))
}

// apart reports whether two claims exclude each other, and returns the key.
func apart(a, b interlock.Claim) bool {
	switch {
	case a.Key == b.Key:
		return !meets[lockOf(a.Mode)][lockOf(b.Mode)]
	case above(a.Key, b.Key):
		return !meets[lockOf(a.Mode)][intentOf(b.Mode)]
	case above(b.Key, a.Key):
		return !meets[intentOf(a.Mode)][lockOf(b.Mode)]
	}
	return false
}

// clash reports whether two claims let one write a leaf that the other may read or
// write. It knows nothing of intents.
func clash(a, b interlock.Claim) bool {
	if a.Key != b.Key && !above(a.Key, b.Key) && !above(b.Key, a.Key) {
		return false
	}
	writes := func(m interlock.Mode) bool { return m == interlock.Exclusive }
	touches := func(m interlock.Mode) bool {
		return m == interlock.Exclusive || m == interlock.Shared || m == interlock.SharedIntentExclusive
	}
	return writes(a.Mode) && touches(b.Mode) || writes(b.Mode) && touches(a.Mode)
}

func anyPair(a, b []interlock.Claim, is func(x, y interlock.Claim) bool) bool {
	for _, x := range a {
		for _, y := range b {
			if is(x, y) {
				return true
			}
		}
	}
	return false
}

// together reports whether two requests are one holder's, so that they exclude each other in
// nothing. A lease that is parked, or closed by the death of its holder, belongs to no holder.
func together(a, b *request) bool {
	if a != b && (a.phase == parked || b.phase == parked || a.phase == closed || b.phase == closed) {
		return false
	}
	return a == b || a.base == b || b.base == a || a.base != nil && a.base == b.base ||
		a.session != 0 && a.session == b.session && a.flow == b.flow
}

// gained returns the claims that exclude a claim which before did not exclude, and those that are counted.
func gained(before, claims []interlock.Claim) (more []interlock.Claim) {
	for _, c := range claims {
		i := slices.IndexFunc(before, func(had interlock.Claim) bool { return had.Key == c.Key })
		gains := i < 0 || c.Mode.Counts() || before[i].Mode.Counts()
		for other := range meets {
			gains = gains || !meets[lockOf(c.Mode)][other] && meets[lockOf(before[i].Mode)][other]
		}
		if gains {
			more = append(more, c)
		}
	}
	return more
}

// capacity is how many permits a key has; 0 if it has no bound.
func capacity(k interlock.Key) uint32 {
	switch {
	case strings.HasPrefix(string(k), "pool:"):
		return poolSize
	case k == "org:acme/runs":
		return runCapacity
	case isShared(k):
		return teamSize
	}
	return 0
}

// isShared reports whether groups share the permits of a key out.
func isShared(k interlock.Key) bool { return strings.HasPrefix(string(k), "team:") }

// crowded checks that no group has more permits of a key than it may, and that no group has
// those that are kept free for another one.
func (a *audit) crowded(w *world, r *request, c interlock.Claim) {
	if !isShared(c.Key) || r.group == ownGroup {
		return
	}
	same, others := c.Count, c.Count // of the same group, and of all groups but the own one
	for _, h := range r.space.holding {
		for _, x := range h.claims {
			if h == r || x.Key != c.Key || x.Mode != interlock.Permits || h.group == ownGroup {
				continue
			}
			others += x.Count
			if h.group == r.group {
				same += x.Count
			}
		}
	}
	if r.group == cappedGroup && same > groupMax {
		w.fail(
			"I13", "at index %d group %s has %d permits of %s, and may have %d: %v", a.index, r.group, same, c.Key, groupMax, r,
		)
	}
	if others > teamSize-groupMin {
		w.fail(
			"I9", "at index %d %d permits of %s are out, and %d are kept free for group %s: %v", a.index, others, c.Key,
			groupMin, ownGroup, r,
		)
	}
}

// used is how many permits of a key are out, of others than but.
func (s *space) used(k interlock.Key, but *request) (n uint32) {
	for _, r := range s.holding {
		if r != but {
			for _, c := range r.claims {
				if c.Key == k && c.Mode == interlock.Permits {
					n += c.Count
				}
			}
		}
	}
	return n
}

// grant makes r a holder of claims under the event's fence, and checks that it may be.
func (a *audit) grant(w *world, r *request, ev *record.Event, claims []interlock.Claim) {
	s := r.space
	if ev.Fence <= a.fence {
		w.fail("I2", "%s at index %d gives fence %d to %v, and %d was given out", ev.Kind, a.index, ev.Fence, r, a.fence)
	}
	a.fence = max(a.fence, ev.Fence)
	a.byFence[ev.Fence] = r
	r.fences = append(r.fences, fenceAt{a.index, ev.Fence})
	fresh := r.phase == waiting && r.heldFrom == 0
	if ev.Kind == record.Admitted && r.base == nil && fresh {
		a.overtakes(w, r, claims)
	}
	if session := a.sessions[r.session]; r.session != 0 && (session == nil || session.ended) {
		w.fail("I4", "%v was granted at index %d, and its session is over", r, a.index)
	}
	before := r.claims
	// A holder takes nothing from others by claims that exclude no more than it held: not even from a lease of its own
	// flow that was closed meanwhile, beside which it stood all the time.
	more := claims
	if ev.Kind == record.Converted {
		more = gained(before, claims)
	}
	s.drop(r)
	r.claim(claims)
	a.entitled(w, r)
	for _, h := range s.holding {
		if together(h, r) {
			continue
		}
		taken := r.claims
		if h.phase == closed {
			taken = more
		}
		if anyPair(h.claims, taken, apart) {
			w.fail("I1", "at index %d %v is granted beside %v", a.index, r, h)
		}
		if anyPair(h.claims, taken, clash) {
			w.fail("I1", "at index %d %v may write where %v reads or writes", a.index, r, h)
		}
	}
	for _, c := range r.claims {
		if c.Mode != interlock.Permits {
			continue
		}
		a.crowded(w, r, c)
		if limit := capacity(c.Key); limit > 0 {
			if n := s.used(c.Key, r) + c.Count; n > limit {
				w.fail("I9", "at index %d %d permits of %s are out, it has %d: %v", a.index, n, c.Key, limit, r)
			}
		}
		if strings.HasPrefix(string(c.Key), "rate:") && ev.Kind != record.Resumed {
			for _, b := range before {
				if b.Key == c.Key && !fresh { // a conversion takes what it adds
					c.Count -= min(c.Count, b.Count)
				}
			}
			a.spend(w, r, c, ev.At)
		}
	}
	for _, c := range r.claims {
		if c.Mode == interlock.Barrier && ev.Kind == record.Admitted {
			s.opened(c, ev.Generation)
		}
	}
	if fresh {
		r.granted, r.heldFrom = ev.At, a.index
	}
	if fresh || ev.Kind == record.Resumed {
		r.heard = max(r.heard, ev.At)
	}
	r.become(held, ev)
	s.holding = append(s.holding, r)
}

func (s *space) opened(c interlock.Claim, generation uint64) {
	for i := range s.opens {
		if o := &s.opens[i]; o.key == c.Key && o.generation == generation {
			o.there++
			return
		}
	}
	s.opens = append(s.opens, sessionStart{c.Key, generation, c.Count, 1})
}

// spend takes tokens from a bucket of its own.
func (a *audit) spend(w *world, r *request, c interlock.Claim, at engine.Time) {
	b := r.space.buckets[c.Key]
	if b == nil {
		b = &bucket{level: rateBurst * ratePer, at: at}
		r.space.buckets[c.Key] = b
	}
	b.level = min(rateBurst*ratePer, b.level+rateCount*max(0, at.Sub(b.at))) - time.Duration(c.Count)*ratePer
	b.at = max(b.at, at)
	if b.level < 0 {
		w.fail(
			"I9", "at index %d %v takes %d tokens of %s, and %v are missing", a.index, r, c.Count, c.Key, -b.level/rateCount,
		)
	}
}
