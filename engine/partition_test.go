package engine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// owners returns the owner of each part, by the number of its member's lease. It fails when
// a part has two.
type owners map[interlock.Key]uint64

func (o owners) follow(t *testing.T, out *engine.Output, parts map[uint64]record.Event) {
	t.Helper()
	for i := range out.Events {
		ev := &out.Events[i]
		if !ev.Part {
			continue
		}
		key := ev.Claims[0].Key
		switch ev.Kind {
		case record.Queued:
			parts[ev.Num] = *ev
		case record.Granted, record.Admitted:
			if o[key] != 0 {
				t.Fatalf("part %s goes to a second member while %d has it", key, o[key])
			}
			o[key] = ev.Base
		case record.Ended:
			delete(o, key)
		}
	}
}

// The largest key is shared out, joined, left and restarted in the middle: no step
// is too large, no part ever has two owners, and in the end all have their share.
func TestManyPartsMove(t *testing.T) {
	t.Parallel()
	l := newLoad(t)
	key := interlock.Key(strings.Repeat("k", interlock.MaxKeyBytes-10))
	has, parts := owners{}, map[uint64]record.Event{}
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
			Head: l.head(interlock.SessionID{}), ID: l.id(), Agent: agent, LeaseRequest: interlock.LeaseRequest{
				Terms:  interlock.Terms{TTL: time.Hour, Grace: time.Second},
				Claims: []interlock.Claim{{Key: key, Mode: interlock.Member, Count: interlock.MaxParts}},
			},
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

// replay continues with an engine made from the journal, as after a crash.
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

// shareRun is one run of TestPartsHaveOneOwner.
type shareRun struct {
	*load
	rnd     *rand.Rand
	has     owners
	parts   map[uint64]record.Event
	open    []interlock.SessionID
	leases  []interlock.LeaseID // of members and of others
	members map[uint64]string   // keys of the members that live, by number
}

var sharedKeys = []interlock.Key{"jobs", "days/2026", "accounts"}

func (r *shareRun) do(cmd engine.Command) {
	r.t.Helper()
	r.load.step(cmd)
	r.has.follow(r.t, &r.out, r.parts)
	for i := range r.out.Events {
		ev := &r.out.Events[i]
		switch {
		case len(ev.Claims) != 1 || ev.Claims[0].Mode != interlock.Member:
		case ev.Kind == record.Granted, ev.Kind == record.Admitted:
			r.members[ev.Num] = string(ev.Claims[0].Key)
		case ev.Kind == record.Ended:
			delete(r.members, ev.Num)
		}
	}
}

func (r *shareRun) pass(d time.Duration) {
	r.t.Helper()
	r.now = r.now.Add(d)
	for n := 0; ; n++ {
		at, ok := r.e.NextTimer()
		if !ok || at > r.now {
			return
		}
		if n > 10_000 {
			r.t.Fatal("it does not come to an end")
		}
		r.do(&engine.Tick{Head: engine.Head{At: r.now}})
	}
}

func (r *shareRun) session() (id interlock.SessionID) {
	if len(r.open) > 0 && r.rnd.IntN(4) > 0 {
		id = r.open[r.rnd.IntN(len(r.open))]
	}
	return id
}

func (r *shareRun) random() {
	key := sharedKeys[r.rnd.IntN(len(sharedKeys))]
	c := &engine.Acquire{
		Head: r.head(r.session()), ID: r.id(), LeaseRequest: interlock.LeaseRequest{
			Flow: fmt.Sprint(r.rnd.IntN(3)),
			Terms: interlock.Terms{
				TTL:   time.Duration(3+r.rnd.IntN(20)) * time.Second,
				Grace: []time.Duration{engine.NoGrace, time.Second}[r.rnd.IntN(2)],
			},
			OnConflict: interlock.Wait,
			Priority:   r.rnd.IntN(3),
		},
		Attach: r.rnd.IntN(2) == 0,
	}
	switch n := r.rnd.IntN(20); {
	case n < 5:
		c.Claims = []interlock.Claim{{Key: key, Mode: interlock.Member, Count: uint32(4 + 3*len(key))}}
		c.Division = interlock.Division(r.rnd.IntN(3))
		r.do(c)
		r.leases = append(r.leases, c.ID)
	case n < 8: // something below a part, a part, or the whole key
		below := key + interlock.Key([]string{"", "/3", "/3/x", "/0/y", "/none"}[r.rnd.IntN(5)])
		c.Claims = []interlock.Claim{{
			Key: below, Mode: []interlock.Mode{interlock.Exclusive, interlock.Shared}[r.rnd.IntN(2)],
		}}
		c.OnConflict = []interlock.OnConflict{interlock.Wait, interlock.Fail, interlock.Preempt}[r.rnd.IntN(3)]
		r.do(c)
		r.leases = append(r.leases, c.ID)
	case n < 12 && len(r.leases) > 0:
		i := r.rnd.IntN(len(r.leases))
		r.do(&engine.Leave{Head: r.head(interlock.SessionID{}), Ticket: interlock.TicketID(r.leases[i])})
		r.leases = append(r.leases[:i], r.leases[i+1:]...)
	case n == 12 && len(r.leases) > 0: // one of its parts, if it is a member
		r.do(&engine.GetLease{Head: r.head(interlock.SessionID{}), Lease: r.leases[r.rnd.IntN(len(r.leases))]})
		for i := range r.out.Effects {
			if p := r.out.Effects[i].Lease.Parts; len(p) > 0 {
				r.do(&engine.Release{Head: r.head(interlock.SessionID{}), Lease: p[r.rnd.IntN(len(p))].Lease})
				break
			}
		}
	case n == 13:
		id := interlock.SessionID(r.id())
		r.do(&engine.OpenSession{
			Head: r.head(interlock.SessionID{}), ID: id, Agent: "a", TTL: time.Duration(2+r.rnd.IntN(20)) * time.Second,
		})
		r.open = append(r.open, id)
	case n == 14 && len(r.open) > 0:
		r.do(&engine.CloseSession{Head: r.head(r.open[r.rnd.IntN(len(r.open))])})
	case n < 17:
		r.pass(time.Duration(r.rnd.IntN(3000)) * time.Millisecond)
	case n == 17:
		r.replay()
		r.has.follow(r.t, &r.out, r.parts)
	case n == 18:
		r.snapshot()
	default:
		r.do(&engine.Heartbeat{Head: r.head(r.session())})
	}
}

// snapshot continues with an engine read from a snapshot.
func (r *shareRun) snapshot() {
	r.t.Helper()
	var b bytes.Buffer
	if err := r.e.WriteSnapshot(&b); err != nil {
		r.t.Fatal(err)
	}
	again, err := engine.ReadSnapshot(&b)
	if err != nil {
		r.t.Fatal(err)
	}
	if again.Hash() != r.e.Hash() {
		r.t.Fatal("a snapshot reads back with another hash")
	}
	r.e = again
	r.do(&engine.Recover{Head: engine.Head{At: r.now}, Epoch: interlock.Epoch(len(r.log))})
}

// settled checks that when there are no other blockers and all graces are over, the members of
// each key have all its parts, and in the even divisions their share of them.
func (r *shareRun) settled() {
	r.t.Helper()
	for _, id := range r.leases {
		r.do(&engine.Poll{Head: r.head(interlock.SessionID{}), Ticket: interlock.TicketID(id)})
		last := r.out.Effects[len(r.out.Effects)-1]
		if c := last.Lease.Claims; last.Outcome == engine.Queued || len(c) == 1 && c[0].Mode != interlock.Member {
			r.do(&engine.Leave{Head: r.head(interlock.SessionID{}), Ticket: interlock.TicketID(id)})
		}
	}
	for range 3 {
		r.pass(time.Second)
	}
	for _, key := range sharedKeys {
		members, parts := 0, 0
		for _, k := range r.members {
			if k == string(key) {
				members++
			}
		}
		for k, m := range r.has {
			if strings.HasPrefix(string(k), string(key)+"/") {
				parts++
				if r.members[m] != string(key) {
					r.t.Fatalf("part %s is with %d, who is no member", k, m)
				}
			}
		}
		if want := 4 + 3*len(key); members > 0 && parts != want || members == 0 && parts != 0 {
			r.t.Fatalf("%s: %d of %d parts are with %d members", key, parts, want, members)
		}
	}
}

// Members come, go and die at random, others block them, and the engine is rebuilt from its
// journal or a snapshot. No part ever has two owners.
func TestPartsHaveOneOwner(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := &shareRun{
			load: newLoad(t), rnd: rand.New(rand.NewPCG(seed, 7)), has: owners{}, parts: map[uint64]record.Event{},
			members: map[uint64]string{},
		}
		for range 300 {
			r.random()
		}
		r.settled()
	}
}
