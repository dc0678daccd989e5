package engine_test

import (
	"fmt"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// acquireAsOf claims keys exclusively, as of a version, and returns the lease.
func (s *stand) acquireAsOf(t *testing.T, v interlock.Version, keys ...interlock.Key) interlock.Lease {
	t.Helper()
	c := &engine.Acquire{Head: s.head(interlock.SessionID{}), ID: s.id(), LeaseRequest: interlock.LeaseRequest{AsOf: v}}
	for _, key := range keys {
		c.Claims = append(c.Claims, interlock.Claim{Key: key})
	}
	s.step(c)
	s.want(t, engine.Granted)
	l := s.out.Effects[0].Lease
	s.step(&engine.Release{Head: s.head(interlock.SessionID{}), Lease: l.ID})
	return l
}

// keysOf are those of the documents that moved.
func keysOf(list []interlock.Stale) (keys []interlock.Key) {
	for i := range list {
		keys = append(keys, list[i].Now.Key)
	}
	return keys
}

// TestMovedAmongMany: whatever is committed elsewhere, changes at a claimed key are reported,
// and other commits raise no alarm. Below a key a bounded number of documents is examined; the
// answer reports that there are more.
func TestMovedAmongMany(t *testing.T) {
	const elsewhere = 5000 // more than one answer looks at
	s := newStand()
	first := s.commit(put("begin", nil)).Version
	s.commit(put("repo", []byte("1")))
	s.commit(put("repo/deep/down", []byte("1")))
	second := s.commit(put("other/below", []byte("1"))).Version
	for i := range elsewhere {
		s.commit(put(fmt.Sprintf("elsewhere/%d", i), []byte("1")))
	}
	for _, c := range []struct {
		key   interlock.Key
		asOf  interlock.Version
		moved string
		more  bool
	}{
		{"repo", first, "[repo]", true}, // what is below moved too long ago
		{"repo", second, "[]", false},
		{"other", first, "[]", true},
		{"other", second, "[]", false},
		{"quiet", first, "[]", false},
		{"begin", first, "[]", false},
		{"elsewhere/17", second, "[elsewhere/17]", false},
	} {
		l := s.acquireAsOf(t, c.asOf, c.key)
		if got := fmt.Sprint(keysOf(l.Stale)); got != c.moved || l.StaleMore != c.more {
			t.Errorf("%s as of %d: %s moved, more %v; want %s, %v", c.key, c.asOf, got, l.StaleMore, c.moved, c.more)
		}
		if l.Changed != (c.moved != "[]" || c.more) {
			t.Errorf("%s as of %d: changed is %v", c.key, c.asOf, l.Changed)
		}
	}
	l := s.acquireAsOf(t, second, "elsewhere")
	if len(l.Stale) != interlock.MaxStale || !l.StaleMore ||
		l.Stale[0].Now.Key != interlock.Key(fmt.Sprintf("elsewhere/%d", elsewhere-1)) {
		t.Errorf("of %d documents %v are told, more %v", elsewhere, keysOf(l.Stale), l.StaleMore)
	}
	for i := range elsewhere {
		s.commit(remove(fmt.Sprintf("elsewhere/%d", i)))
	}
	if l := s.acquireAsOf(t, second, "elsewhere"); len(l.Stale) != interlock.MaxStale || !l.Stale[0].Now.Absent {
		t.Errorf("of %d deleted documents %v are told", elsewhere, keysOf(l.Stale))
	}
}

// TestMovedAndForgotten: a document is assumed to have changed if its history no longer reaches
// back to the grant of the lease.
func TestMovedAndForgotten(t *testing.T) {
	s := newStand()
	s.step(&engine.SetPattern{
		Head: s.head(interlock.SessionID{}), Pattern: interlock.Pattern{Name: "k", Shape: "k", Write: interlock.WriteOpen},
	})
	v := s.commit(put("k", []byte("1"))).Version
	s.commit(put("k", []byte("2")))
	c := &engine.Acquire{Head: s.head(interlock.SessionID{}), ID: s.id(), LeaseRequest: interlock.LeaseRequest{
		AsOf: v, Claims: []interlock.Claim{{Key: "k"}, {Key: "steady"}},
	}}
	s.step(c)
	s.want(t, engine.Granted)
	for range 2 * interlock.MaxVersions {
		s.commit(put("k", []byte("more")))
	}
	s.step(&engine.GetLease{Head: s.head(interlock.SessionID{}), Lease: c.ID})
	l := s.out.Effects[0].Lease
	if got := fmt.Sprint(keysOf(l.Stale)); got != "[k]" || l.Stale[0].Known {
		t.Errorf("%s moved, which is known: %+v", got, l.Stale)
	}
	s.snapshots(t)
}

// TestWindowCostsNothing: a lease without commits during its wait, and one in a namespace
// without state, is journaled as if there were no versions.
func TestWindowCostsNothing(t *testing.T) {
	s := newStand()
	see := func(key interlock.Key, want bool) {
		t.Helper()
		id := s.session(t)
		s.acquire(id, key)
		lease := counted(s.ids)
		s.acquire(s.session(t), key)
		queued := s.out.Events[0].AsOf
		s.step(&engine.Release{Head: s.head(id), Lease: lease})
		if last := &s.out.Events[len(s.out.Events)-1]; last.Kind != record.Admitted {
			t.Errorf("nobody is granted %s: %v", key, last.Kind)
		}
		if got := queued > 0; got != want {
			t.Errorf("a waiter remembers version %d", queued)
		}
		for i := range s.out.Events {
			if ev := &s.out.Events[i]; ev.Version > 0 {
				t.Errorf("%v tells version %d, though nothing was committed", ev.Kind, ev.Version)
			}
		}
		s.step(&engine.CloseSession{Head: s.head(id)})
	}
	see("k", false)
	v := s.commit(put("other", nil)).Version
	see("l", true)
	s.step(&engine.Acquire{Head: s.head(interlock.SessionID{}), ID: s.id(), LeaseRequest: interlock.LeaseRequest{
		AsOf: v, Claims: []interlock.Claim{{Key: "m"}},
	}})
	if ev := s.out.Events[0]; ev.AsOf > 0 || ev.Version > 0 {
		t.Errorf("who has read what there is is journaled with version %d as of %d", ev.Version, ev.AsOf)
	}
}
