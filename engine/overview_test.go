package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// An overview ranks all keys that are waited for, and counts all others, but looks at no more than 10,000 of them.
func TestOverviewOfMany(t *testing.T) {
	const keys, lines = 40_000, 300
	s := newStand()
	holder := s.session(t)
	s.ask(holder, []interlock.Claim{{Key: "shared", Mode: interlock.Shared}})
	for i := range keys {
		s.acquire(holder, interlock.Key(fmt.Sprintf("dir:%d/file", i)))
	}
	type wait struct {
		session interlock.SessionID
		id      [16]byte
	}
	var waits []wait
	for i := range lines {
		s.now = s.now.Add(time.Second)
		w := wait{session: s.session(t)}
		w.id = s.acquire(w.session, interlock.Key(fmt.Sprintf("dir:%d/file", keys-1-i)))
		s.want(t, engine.Queued)
		waits = append(waits, w)
	}
	look := func() *engine.Overview {
		o := &engine.Overview{Namespace: "bench"}
		looks := 1
		for !o.Look(s.e) {
			looks++
		}
		if looks > 100 {
			t.Errorf("%d looks beside %d keys", looks, keys)
		}
		return o
	}
	o := look()
	if len(o.Keys) != 200 || o.MoreKeys != keys+1-200 || o.Counts.Waiters != lines || len(o.Graph.Edges) != lines {
		t.Errorf("%d keys and %d more, %d edges, %+v", len(o.Keys), o.MoreKeys, len(o.Graph.Edges), o.Counts)
	}
	for i, k := range o.Keys {
		want := interlock.Key(fmt.Sprintf("dir:%d/file", keys-1-i))
		if k.Key != want || k.Lost < time.Duration(lines-1-i)*time.Second {
			t.Fatalf("key %d is %s, with %v lost; want %s", i, k.Key, k.Lost, want)
		}
	}
	for _, w := range waits[10:] {
		s.step(&engine.Leave{Head: s.head(w.session), Ticket: interlock.TicketID(w.id)})
	}
	if o = look(); o.Counts.Waiters != 10 || len(o.Keys) != 200 || o.Keys[9].Lost == 0 || o.Keys[10].Lost != 0 {
		t.Errorf("beside %d waiters: %d keys, %+v", o.Counts.Waiters, len(o.Keys), o.Keys[9:11])
	}
	if o.MoreKeys != keys+1-200 {
		t.Errorf("%d more keys beside 10 waiters", o.MoreKeys)
	}
}

// BenchmarkOverview looks at a namespace at its limit: as many leases as there can be, 10,000 of the requests being
// waiters in lines of 1,000. B/op are of one picture.
func BenchmarkOverview(b *testing.B) {
	for _, waiters := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("waiters=%d", waiters), func(b *testing.B) {
			s := newStand()
			const perSession = 100
			var session interlock.SessionID
			for i := range interlock.MaxLeases - waiters {
				if i%perSession == 0 {
					session = s.session(b)
				}
				s.acquire(session, interlock.Key(fmt.Sprint("account:", i)))
				s.want(b, engine.Granted)
			}
			for i := range waiters {
				s.now = s.now.Add(time.Millisecond)
				session = s.session(b)
				s.acquire(session, interlock.Key(fmt.Sprint("account:", i/1000)))
				s.want(b, engine.Queued)
			}
			b.ReportAllocs()
			b.ResetTimer()
			longest := time.Duration(0)
			for range b.N {
				o := engine.Overview{Namespace: "bench"}
				for done := false; !done; {
					began := time.Now()
					done = o.Look(s.e)
					longest = max(longest, time.Since(began))
				}
				if len(o.Keys) != 200 || waiters > 0 && (o.Keys[0].Lost == 0 || len(o.Graph.Edges) != 500) {
					b.Fatalf("%d keys, %d edges", len(o.Keys), len(o.Graph.Edges))
				}
			}
			b.ReportMetric(float64(longest.Microseconds()), "µs/longest-look")
		})
	}
}
