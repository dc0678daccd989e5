package resp

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
)

// grant is a lease that this process took for a client.
type grant struct {
	lease     interlock.LeaseID
	principal string // of its credential; under another one the value proves nothing
	value     string
	owner     string // may delete it without its value
	conn      int64  // the connection that took it
	nx        bool   // taken only because the key was free

	// Guarded by grants.mu.
	keys  []string  // with the namespace, as the client named them
	ends  time.Time // no later than the ttl ends it by itself
	term  time.Duration
	over  bool        // the door has ended it; its client may not know
	asked bool        // a client that may be its holder was refused to delete it
	early time.Time   // when the door ends it, for a ttl below the server's minimum; zero: it does not
	timer *time.Timer // for early
	// A grant is ended early only while no client renews it, and is not renewed once that has begun.
	renewals int
	ending   bool
}

// grants finds the newest lease that this process took on a key, so that a compare needs no look at the
// shard. It is a hint: the shard decides whether the lease still lives, and what is not here is read from
// it. A lease of an earlier process is not here.
type grants struct {
	mu      sync.Mutex
	byKey   map[string]*grant
	overdue map[string][]late
	sweepAt int // how many entries there may be before those that are over are forgotten
}

// late is a client with a lease that has run out without a DEL, and another lease has the key now. Its DEL may still
// come, and must not end that lease.
type late struct {
	owner string
	value string
	until time.Time // when its DEL is not expected any more
}

// lateness is how long after its end the DEL of a lease is expected.
func (x *grant) lateness() time.Duration { return min(max(10*x.term, time.Minute), time.Hour) }

const (
	// leastSwept is the number of entries below which none is forgotten for its age.
	leastSwept = 1024
	// mostEnded bounds the leases that have ended without a DEL and are remembered.
	mostEnded = 1 << 17
)

func newGrants() *grants {
	return &grants{byKey: map[string]*grant{}, overdue: map[string][]late{}, sweepAt: leastSwept}
}

// nameOf names a key of a namespace, which has no '/' in it.
func nameOf(namespace interlock.Namespace, key string) string { return string(namespace) + "/" + key }

// get returns the newest lease that this process took on a key.
func (g *grants) get(name string) *grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.byKey[name]
}

// put remembers a grant under all of its keys.
func (g *grants) put(x *grant, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.byKey)+len(g.overdue) >= g.sweepAt {
		g.sweep(now)
	}
	for _, name := range x.keys {
		if old := g.byKey[name]; old != nil && old.lease != x.lease && !old.asked {
			if until := old.ends.Add(old.lateness()); now.Before(until) {
				g.prune(name)
				list := g.overdue[name]
				g.overdue[name] = append(list[max(0, len(list)-mostLate+1):], late{old.owner, old.value, until})
			}
		}
		g.byKey[name] = x
	}
}

// mostLate bounds the clients that are remembered for one key.
const mostLate = 16

// prune forgets the clients of a key from which no DEL is expected any more.
func (g *grants) prune(name string) {
	list, known := g.overdue[name]
	if !known {
		return
	}
	now := time.Now()
	g.overdue[name] = slices.DeleteFunc(list, func(l late) bool { return l.until.Before(now) })
	if len(g.overdue[name]) == 0 {
		delete(g.overdue, name)
	}
}

// sweep forgets leases that have ended so long ago that no DEL is expected, and the oldest of all others that have
// ended if they are too many.
func (g *grants) sweep(now time.Time) {
	var ended []time.Time
	for name, old := range g.byKey {
		switch {
		case old.ends.Add(old.lateness()).Before(now):
			delete(g.byKey, name)
		case old.ends.Before(now):
			ended = append(ended, old.ends)
		}
	}
	for name := range g.overdue {
		g.prune(name)
	}
	if len(ended) > mostEnded {
		slices.SortFunc(ended, time.Time.Compare)
		since := ended[len(ended)-mostEnded/2]
		for name, old := range g.byKey {
			if old.ends.Before(since) {
				delete(g.byKey, name)
			}
		}
	}
	if len(g.overdue) > mostEnded {
		clear(g.overdue)
	}
	g.sweepAt = max(leastSwept, 2*(len(g.byKey)+len(g.overdue)))
}

// isLate reports whether the DEL of a client for an earlier lease of a key may still come.
func (g *grants) isLate(name, owner string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.overdue[name], func(l late) bool { return l.owner == owner && now.Before(l.until) })
}

// arrived takes note of the DEL of a client that has no lease of the key any more.
func (g *grants) arrived(name, owner string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prune(name)
	if i := slices.IndexFunc(g.overdue[name], func(l late) bool { return l.owner == owner }); i >= 0 {
		g.forget(name, i)
	} else if x := g.byKey[name]; x != nil && x.owner == owner {
		delete(g.byKey, name)
	}
}

// arrivedWith takes note of a DEL that names a value which the key does not have.
func (g *grants) arrivedWith(name, value string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prune(name)
	if i := slices.IndexFunc(g.overdue[name], func(l late) bool { return l.value == value }); i >= 0 {
		g.forget(name, i)
	} else if x := g.byKey[name]; x != nil && x.over && x.value == value {
		delete(g.byKey, name)
	}
}

// forget forgets a client from which a DEL was expected.
func (g *grants) forget(name string, i int) {
	if g.overdue[name] = slices.Delete(g.overdue[name], i, i+1); len(g.overdue[name]) == 0 {
		delete(g.overdue, name)
	}
}

// ask takes note that a client that may be its holder was refused to delete a lease. So one DEL less is expected when
// it ends.
func (g *grants) ask(x *grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	x.asked = true
}

// end takes note that the door has ended a lease. Its client may not know.
func (g *grants) end(x *grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if x.timer != nil {
		x.timer.Stop()
	}
	x.over, x.early, x.ends = true, time.Time{}, time.Now()
}

// live returns the newest lease of a key, if the door has not ended it.
func (g *grants) live(name string) *grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	if x := g.byKey[name]; x != nil && !x.over {
		return x
	}
	return nil
}

// drop forgets a grant.
func (g *grants) drop(x *grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if x.timer != nil {
		x.timer.Stop()
	}
	for _, name := range x.keys {
		if g.byKey[name] == x {
			delete(g.byKey, name)
		}
	}
}

// cut forgets some keys of a lease.
func (g *grants) cut(lease interlock.LeaseID, nameOf func(string) string, keys []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, key := range keys {
		name := nameOf(key)
		x := g.byKey[name]
		if x == nil || x.lease != lease {
			continue
		}
		delete(g.byKey, name)
		x.keys = slices.DeleteFunc(slices.Clone(x.keys), func(have string) bool { return have == name })
	}
}

// byLease returns the grant of a lease at a key, nil if it is not remembered.
func (g *grants) byLease(name string, lease interlock.LeaseID) *grant {
	if x := g.get(name); x != nil && x.lease == lease {
		return x
	}
	return nil
}

// time sets when a grant ends. With early, end is called at that time.
func (g *grants) time(x *grant, term time.Duration, ends, early time.Time, end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if x.timer != nil {
		x.timer.Stop()
		x.timer = nil
	}
	x.term, x.ends, x.early = term, ends, early
	if !early.IsZero() {
		x.timer = time.AfterFunc(time.Until(early), end)
	}
}

// stop ends the timers: the server's minimum ends what they would have ended.
func (g *grants) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, x := range g.byKey {
		if x.timer != nil {
			x.timer.Stop()
		}
	}
}

// count returns how many keys a grant has.
func (g *grants) count(x *grant) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(x.keys)
}

// beginRenewal reports whether a grant may be renewed. If so, endRenewal has to follow.
func (g *grants) beginRenewal(x *grant) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if x.ending {
		return false
	}
	x.renewals++
	return true
}

func (g *grants) endRenewal(x *grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	x.renewals--
}

// beginEnd reports whether a grant is to be ended early: it is due, and no client renews it.
func (g *grants) beginEnd(x *grant) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if x.early.IsZero() || time.Now().Before(x.early) || x.renewals > 0 {
		return false
	}
	x.ending = true
	return true
}

// left returns the rest of the ttl of a grant.
func (g *grants) left(x *grant) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Until(x.ends)
}

// endsEarly returns when the door ends a grant; zero if it does not.
func (g *grants) endsEarly(x *grant) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return x.early
}

// of returns the grants of a namespace.
func (g *grants) of(namespace interlock.Namespace) (list []*grant) {
	seen := map[*grant]bool{}
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, x := range g.byKey {
		if strings.HasPrefix(name, string(namespace)+"/") && !seen[x] {
			seen[x] = true
			list = append(list, x)
		}
	}
	return list
}
