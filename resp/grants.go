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

	// Guarded by grants.mu.
	keys  []string    // with the namespace, as the client named them
	ends  time.Time   // no later than the ttl ends it by itself
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
	sweepAt int // how many entries there may be before those that are over are forgotten
}

// leastSwept is the number of entries below which none is forgotten for its age.
const leastSwept = 1024

func newGrants() *grants { return &grants{byKey: map[string]*grant{}, sweepAt: leastSwept} }

// nameOf names a key of a namespace, which has no '/' in it.
func nameOf(namespace interlock.Namespace, key string) string { return string(namespace) + "/" + key }

func (g *grants) get(name string) *grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.byKey[name]
}

// put remembers a grant under all of its keys.
func (g *grants) put(x *grant, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.byKey) >= g.sweepAt {
		for name, old := range g.byKey {
			if old.ends.Before(now) {
				delete(g.byKey, name)
			}
		}
		g.sweepAt = max(leastSwept, 2*len(g.byKey))
	}
	for _, name := range x.keys {
		g.byKey[name] = x
	}
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
func (g *grants) time(x *grant, ends, early time.Time, end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if x.timer != nil {
		x.timer.Stop()
		x.timer = nil
	}
	x.ends, x.early = ends, early
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
