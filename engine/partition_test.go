package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// owners gives who has each part, by the number of its member's lease. It fails when
// a part has two.
type owners map[interlock.Key]uint64

func (o owners) follow(t *testing.T, out *engine.Output, parts map[uint64]engine.Event) {
	t.Helper()
	for i := range out.Events {
		ev := &out.Events[i]
		if !ev.Part {
			continue
		}
		key := ev.Claims[0].Key
		switch ev.Kind {
		case engine.EvQueued:
			parts[ev.Num] = *ev
		case engine.EvGranted, engine.EvAdmitted:
			if o[key] != 0 {
				t.Fatalf("part %s goes to a second member while %d has it", key, o[key])
			}
			o[key] = ev.Base
		case engine.EvEnded:
			delete(o, key)
		}
	}
}

// The largest key is shared out, joined, left and restarted in the middle: no step
// is too large, no part ever has two owners, and in the end all have their share.
func TestManyPartsMove(t *testing.T) {
	l := newLoad(t)
	key := interlock.Key(strings.Repeat("k", interlock.MaxKeyBytes-10))
	has, parts := owners{}, map[uint64]engine.Event{}
	settle := func(d time.Duration) {
		l.now = l.now.Add(d)
		for n := 0; ; n++ {
			at, ok := l.e.NextTimer()
			if !ok || at > l.now {
				return
			}
			if n > 10_000 {
				t.Fatal("it does not come to an end")
			}
			l.step(&engine.Tick{Head: engine.Head{At: l.now}})
			has.follow(t, &l.out, parts)
		}
	}
	join := func(agent string) interlock.LeaseID {
		c := &engine.Acquire{
			Head: l.head(interlock.SessionID{}), ID: l.id(), Agent: agent, TTL: time.Hour, Grace: time.Second,
			Claims: []interlock.Claim{{Key: key, Mode: interlock.Member, Count: interlock.MaxParts}},
		}
		l.step(c)
		has.follow(t, &l.out, parts)
		return c.ID
	}
	leave := func(id interlock.LeaseID) {
		l.step(&engine.Release{Head: l.head(interlock.SessionID{}), Lease: id})
		has.follow(t, &l.out, parts)
	}
	even := func(members int) {
		t.Helper()
		count := map[uint64]int{}
		for _, m := range has {
			count[m]++
		}
		if len(has) != interlock.MaxParts || len(count) != members {
			t.Fatalf("%d parts are with %d members, want %d with %d", len(has), len(count), interlock.MaxParts, members)
		}
		for m, n := range count {
			if n < interlock.MaxParts/members || n > interlock.MaxParts/members+1 {
				t.Errorf("member %d of %d has %d parts", m, members, n)
			}
		}
	}
	first := join("a")
	settle(0)
	even(1)
	second, third := join("b"), join("c")
	settle(0)
	settle(2 * time.Second)
	even(3)
	leave(second)
	l.replay()
	has.follow(t, &l.out, parts)
	settle(0)
	settle(2 * time.Second)
	even(2)
	leave(third)
	leave(first)
	l.replay()
	has.follow(t, &l.out, parts)
	settle(0)
	if c := l.e.Counts(); c.Leases != 0 || c.Waiters != 0 {
		t.Errorf("at the end there are %d leases and %d waiters", c.Leases, c.Waiters)
	}
}

// replay goes on with an engine made from the journal, as after a crash.
func (l *load) replay() {
	l.t.Helper()
	fresh := engine.New()
	for i, entry := range l.log {
		if err := fresh.Apply(entry); err != nil {
			l.t.Fatalf("entry %d: %v", i, err)
		}
	}
	if fresh.Hash() != l.e.Hash() {
		l.t.Fatal("the state after replay has another hash")
	}
	l.e = fresh
	l.step(&engine.Recover{Head: engine.Head{At: l.now}, Epoch: interlock.Epoch(len(l.log))})
}

// Members of many sessions come and die at random; between the steps no part has
// two owners, and every answer to a member shows parts that are its own.
func TestPartsHaveOneOwner(t *testing.T) {
	l := newLoad(t)
	has, parts := owners{}, map[uint64]engine.Event{}
	for i := range 60 {
		s := l.open(time.Duration(5+i%7) * time.Second)
		l.step(&engine.Acquire{
			Head: l.head(s), ID: l.id(), Grace: time.Second, OnConflict: interlock.Wait, Attach: true, Flow: fmt.Sprint(i),
			Claims: []interlock.Claim{{Key: "jobs", Mode: interlock.Member, Count: 32}}, Division: interlock.Division(i / 20),
		})
		has.follow(t, &l.out, parts)
		for range 3 {
			l.now = l.now.Add(400 * time.Millisecond)
			for at, ok := l.e.NextTimer(); ok && at <= l.now; at, ok = l.e.NextTimer() {
				l.step(&engine.Tick{Head: engine.Head{At: l.now}})
				has.follow(t, &l.out, parts)
			}
		}
		if i%9 == 8 {
			l.replay()
			has.follow(t, &l.out, parts)
		}
	}
	l.pass(time.Minute)
	l.pass(time.Second) // of grace
	if c := l.e.Counts(); c.Leases != 0 || c.Waiters != 0 {
		t.Errorf("at the end there are %d leases and %d waiters", c.Leases, c.Waiters)
	}
}
