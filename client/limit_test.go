package client_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/proto"
)

// Patterns and settings, permits and rates, and the limits of leases and waits.
var limitScenarios = []scenario{
	{"patterns are set, listed and dropped", func(t *testing.T, s *stage) {
		c := s.client("operator")
		want := []interlock.Pattern{
			{
				Name: "gpu", Shape: "gpu:{n:int}", Aliases: []string{"gpu-{n:int}"}, Members: []string{"gpu:{0..3}"}, Capacity: 4,
				Groups: []interlock.Group{{Name: "batch", Max: 2}, {Name: "live", Min: 1}}, TTL: time.Minute, MaxTTL: time.Hour,
				Grace: time.Second, MaxGrace: time.Minute, MaxHold: time.Hour, Stall: time.Minute, LockDelay: time.Second,
				MaxWait:    time.Hour,
				MaxWaiters: 7,
				Allow:      []interlock.Rule{{Principal: "*", Modes: []interlock.Mode{interlock.Permits, interlock.Exclusive}}},
				Preempt:    interlock.PreemptRevoke, Park: interlock.ParkFree, MaxPark: time.Hour,
				OnDeadlock: interlock.DeadlockRevoke,
			},
			{Name: "units", Shape: "units:{n}", Rate: 10, Per: time.Minute, Burst: 20},
		}
		for _, p := range want {
			if err := c.SetPattern(s.ctx, p); err != nil {
				t.Fatal(err)
			}
		}
		got, err := c.Patterns(s.ctx)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v, got\n%+v\nwanted\n%+v", err, got, want)
		}
		got[0].Members[0], got[0].Allow[0].Modes[0] = "mine", interlock.Shared // a list of one's own
		if again, err := c.Patterns(s.ctx); err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("%v, then %+v", err, again)
		}
		if err := c.DropPattern(s.ctx, "gpu"); err != nil {
			t.Error(err)
		}
		if err := c.DropPattern(s.ctx, "gpu"); !isCode(err, interlock.CodeUnknownPattern) {
			t.Errorf("dropped twice: %v", err)
		}
		if got, err := c.Patterns(s.ctx); err != nil || len(got) != 1 || got[0].Name != "units" {
			t.Errorf("%v, left %+v", err, got)
		}
		if err := c.SetPattern(
			s.ctx, interlock.Pattern{Name: "bad", Shape: "{"},
		); !isCode(err, interlock.CodeInvalidPattern) {
			t.Errorf("bad pattern: %v", err)
		}
	}},
	{"a long list of patterns comes in pieces", func(t *testing.T, s *stage) {
		c := s.client("operator")
		const many = 60
		for i := range many {
			p := interlock.Pattern{Name: fmt.Sprintf("p%02d", i), Shape: fmt.Sprintf("p%d:{x}", i)}
			for m := range interlock.MaxMembers / 64 {
				p.Members = append(p.Members, fmt.Sprintf("p%d:%d-%s", i, m, strings.Repeat("x", 400)))
			}
			if err := c.SetPattern(s.ctx, p); err != nil {
				t.Fatal(err)
			}
		}
		got, err := c.Patterns(s.ctx)
		if err != nil || len(got) != many {
			t.Fatalf("%v, %d patterns", err, len(got))
		}
		for i := range got {
			if got[i].Name != fmt.Sprintf("p%02d", i) {
				t.Errorf("pattern %d is %s", i, got[i].Name)
			}
		}
	}},
	{"settings are replaced, and read", func(t *testing.T, s *stage) {
		c := s.client("operator")
		want := interlock.Settings{
			StrictOrder: true, NearMisses: true, Quota: interlock.Quota{Leases: 2}, PrincipalQuota: interlock.Quota{Waiters: 9},
		}
		if err := c.Configure(s.ctx, want); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Settings(s.ctx); err != nil || got != want {
			t.Errorf("%v, %+v", err, got)
		}
		s.acquire(c, exclusively("a"))
		s.acquire(c, exclusively("b"))
		if _, err := c.Acquire(s.ctx, exclusively("c")); !isCode(err, interlock.CodeTooManyLeases) {
			t.Errorf("a third lease: %v", err)
		}
	}},
	{"a key that fits no pattern is refused once the namespace is closed", func(t *testing.T, s *stage) {
		s.pattern(interlock.Pattern{Name: "account", Shape: "account:{id:int}", Aliases: []string{"acct-{id:int}"}})
		c := s.client("a")
		s.acquire(c, exclusively("open:1"))
		if err := c.Configure(s.ctx, interlock.Settings{Closed: true}); err != nil {
			t.Fatal(err)
		}
		_, err := c.Acquire(s.ctx, exclusively("acount:7"))
		refusal, ok := errors.AsType[*interlock.Error](err)
		if !ok || refusal.Code != interlock.CodeUnmatchedKey || len(refusal.Nearest) == 0 ||
			!strings.Contains(refusal.Nearest[0], "account:") {
			t.Errorf("got %+v", err)
		}
		if lease := s.acquire(c, exclusively("acct-007")); lease.Key() != "account:7" {
			t.Errorf("the alias got %s", lease.Key())
		}
	}},
	{"a key that is spelled almost like a live one is warned of", func(t *testing.T, s *stage) {
		c := s.client("a")
		if err := c.Configure(s.ctx, interlock.Settings{NearMisses: true}); err != nil {
			t.Fatal(err)
		}
		if first := s.acquire(c, exclusively("customer:0123")); len(first.Warnings()) != 0 {
			t.Errorf("warnings %q", first.Warnings())
		}
		if near := s.acquire(c, exclusively("Customers:123")); len(near.Warnings()) == 0 {
			t.Error("no warning")
		}
	}},
	{"permits are counted, and a group gets its share", func(t *testing.T, s *stage) {
		s.pattern(interlock.Pattern{
			Name: "gpu", Shape: "gpu", Capacity: 4, Groups: []interlock.Group{{Name: "batch", Max: 2}},
		})
		c := s.client("a")
		three := s.acquire(c, client.Request{Claims: permits("gpu", 3)})
		if info := three.Info(); info.Claims[0] != (interlock.Claim{Key: "gpu", Mode: interlock.Permits, Count: 3}) {
			t.Errorf("claims %+v", info.Claims)
		}
		_, err := c.Acquire(s.ctx, client.Request{Claims: permits("gpu", 2)})
		refusal, ok := errors.AsType[*interlock.Error](err)
		full := &interlock.Capacity{
			Permits: 4, Used: 3, Groups: []interlock.GroupUse{{Group: interlock.Group{Name: "batch", Max: 2}}},
		}
		if !ok || refusal.Code != interlock.CodeAtCapacity || !reflect.DeepEqual(refusal.Capacity, full) ||
			refusal.Holders[0].Count != 3 {
			t.Errorf("got %+v", err)
		}
		if _, err := c.Acquire(s.ctx, client.Request{Claims: permits("gpu", 5)}); !isCode(err, interlock.CodeTooManyPermits) {
			t.Errorf("five of four: %v", err)
		}
		s.release(three, "")
		s.acquire(c, client.Request{Claims: permits("gpu", 2), Terms: interlock.Terms{Group: "batch"}})
		if _, err := c.Acquire(
			s.ctx, client.Request{Claims: permits("gpu", 1), Terms: interlock.Terms{Group: "batch"}},
		); !isCode(err, interlock.CodeAtCapacity) {
			t.Errorf("a third of the group: %v", err)
		}
		if lease := s.acquire(
			c, client.Request{Claims: permits("gpu", 2), Terms: interlock.Terms{Group: "live"}},
		); lease.Info().Group != "live" {
			t.Errorf("lease %+v", lease.Info())
		}
	}},
	{"any one of several keys", func(t *testing.T, s *stage) {
		s.pattern(interlock.Pattern{Name: "gpu", Shape: "gpu:{n}", Members: []string{"gpu:{0..1}"}})
		c := s.client("a")
		first := s.acquire(c, client.Request{Prefix: "gpu:"})
		second := s.acquire(c, client.Request{Any: true, Keys: []interlock.Key{"gpu:0", "gpu:1"}})
		if first.Key() == second.Key() || len(second.Claims()) != 1 {
			t.Errorf("%s and %s", first.Key(), second.Key())
		}
		place := s.wait(c, client.Request{Prefix: "gpu:", OnConflict: interlock.Wait})
		place.queued()
		s.release(second, "")
		if third := place.granted(); third.Key() != second.Key() {
			t.Errorf("got %s, %s was free", third.Key(), second.Key())
		}
	}},
	{"a holder is asked to yield, and may refuse", func(t *testing.T, s *stage) {
		lease := s.acquire(s.client("slow"), exclusively("k"))
		place := s.wait(s.client("urgent"), client.Request{
			Keys: []interlock.Key{"k"}, OnConflict: interlock.Preempt, Priority: 7, Purpose: "hot\x1b[31mfix",
		})
		place.queued()
		await(t, lease.Asked(), "a request to yield")
		y := lease.Yield()
		if y == nil || y.Agent != "urgent" || y.Session == "" || y.Priority != 7 || y.Purpose != "hot [31mfix" ||
			y.Revoked || lease.Err() != nil {
			t.Fatalf("yield %+v, err %v", y, lease.Err())
		}
		s.release(lease, "half of it is done")
		if next := place.granted(); len(next.Notes()) != 1 {
			t.Errorf("notes %+v", next.Notes())
		}
	}},
	{"a pattern may let the key be taken from its holder", func(t *testing.T, s *stage) {
		s.pattern(interlock.Pattern{Name: "k", Shape: "k", Preempt: interlock.PreemptRevoke})
		lease := s.acquire(
			s.client("slow"), client.Request{Keys: []interlock.Key{"k"}, Terms: interlock.Terms{Grace: time.Hour}},
		)
		ctx := lease.Context()
		place := s.wait(s.client("urgent"), client.Request{Keys: []interlock.Key{"k"}, OnConflict: interlock.Preempt})
		place.queued()
		await(t, lease.Asked(), "a request to yield")
		await(t, ctx.Done(), "the end of the lease")
		y, refusal := lease.Yield(), &interlock.Error{}
		if !errors.As(context.Cause(ctx), &refusal) || refusal.Code != interlock.CodeInGrace ||
			refusal.EndedBy != "preempted" || y == nil || !y.Revoked {
			t.Errorf("cause %+v, yield %+v", context.Cause(ctx), y)
		}
		s.release(lease, "") // in its grace it still may
		place.granted()
	}},
}

// Events in time, with a virtual clock.

func TestStallEndsALeaseWithoutProgress(t *testing.T) {
	crowd(t, func(s *stage) {
		c := s.client("a")
		began := time.Now()
		lease := s.acquire(c, client.Request{Keys: []interlock.Key{"k"}, Terms: interlock.Terms{Stall: 10 * time.Second}})
		for i := range 60 {
			c.SetProgress(fmt.Sprint(i, " of 60"))
			<-time.After(5 * time.Second)
		}
		if lease.Err() != nil {
			s.t.Fatalf("lost in spite of its progress: %v", lease.Err())
		}
		worked := time.Since(began)
		<-lease.Warned()
		if left := lease.Left(); left <= 0 || left > 5*time.Second {
			s.t.Errorf("warned with %v left", left)
		}
		<-lease.Context().Done()
		if idle := time.Since(began) - worked; idle > 6*time.Second {
			s.t.Errorf("it ended %v after the last progress could have stalled", idle)
		}
		refusal, ok := errors.AsType[*interlock.Error](lease.Err())
		if !ok || refusal.EndedBy != "stall" {
			s.t.Errorf("ended by %+v", lease.Err())
		}
	})
}

// Progress is reported soon enough for any ttl of the session, and not at every change.
func TestProgressIsToldSoon(t *testing.T) {
	crowd(t, func(s *stage) {
		c := s.w.dial(client.Config{Agent: "a", SessionTTL: time.Hour})
		lease := s.acquire(c, client.Request{Keys: []interlock.Key{"k"}, Terms: interlock.Terms{Stall: 4 * time.Second}})
		for i := range 3000 {
			c.SetProgress(fmt.Sprint(i))
			<-time.After(10 * time.Millisecond)
		}
		if lease.Err() != nil {
			s.t.Error(lease.Err())
		}
	})
}

func TestWaitLimit(t *testing.T) {
	crowd(t, func(s *stage) {
		s.acquire(s.client("a"), exclusively("k"))
		began := time.Now()
		place := s.wait(
			s.client("b"),
			client.Request{
				Keys: []interlock.Key{"k"}, OnConflict: interlock.Wait, Terms: interlock.Terms{MaxWait: 20 * time.Second},
			},
		)
		place.queued()
		if err := place.refused(); !isCode(err, interlock.CodeWaitLimit) || time.Since(began) != 20*time.Second {
			s.t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestLockDelayIsShown(t *testing.T) {
	crowd(t, func(s *stage) {
		b := &breaker{dial: s.w.inside}
		dead := s.w.connect(b.Dial, client.Config{Agent: "dead", SessionTTL: 6 * time.Second})
		lease := s.acquire(
			dead,
			client.Request{Keys: []interlock.Key{"k"}, Terms: interlock.Terms{Grace: client.NoGrace, LockDelay: time.Minute}},
		)
		unblock := b.block()
		b.cut()
		<-time.After(10 * time.Second)
		_, err := s.client("b").Acquire(s.ctx, client.Request{Keys: []interlock.Key{"k"}})
		refusal, ok := errors.AsType[*interlock.Error](err)
		if !ok || refusal.Code != interlock.CodeHeld || refusal.ConflictKind != interlock.LockDelayed ||
			len(refusal.Holders) != 1 || refusal.Holders[0].Liveness != interlock.Closed {
			s.t.Errorf("got %+v", err)
		}
		if lease.Err() == nil {
			s.t.Error("the dead holder counts its lease as held")
		}
		unblock()
		place := s.wait(s.client("c"), exclusively("k"))
		began := time.Now()
		place.granted()
		if waited := time.Since(began); waited < 45*time.Second || waited > time.Minute {
			s.t.Errorf("the key was closed for another %v", waited)
		}
	})
}

// A request for a key under its other spelling is the same request when it is sent
// again.
func TestLostGrantOfAnAlias(t *testing.T) {
	s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	s.pattern(interlock.Pattern{Name: "account", Shape: "account:{id:int}", Aliases: []string{"acct-{id:int}"}})
	b.setLose(answers(proto.Granted, nil))
	lease := s.acquire(c, exclusively("acct-007"))
	if lease.Key() != "account:7" {
		t.Errorf("got %s", lease.Key())
	}
	b.setLose(answers(proto.Granted, nil))
	s.convert(lease, interlock.Claim{Key: "acct-7", Mode: interlock.Shared})
	if lease.Key() != "account:7" || lease.Claims()[0].Mode != interlock.Shared {
		t.Errorf("converted to %+v", lease.Claims())
	}
	s.release(lease, "")
}

// A request to yield while the holder's link is broken reaches it when it is back.
func TestAskedWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
		lease := s.acquire(c, exclusively("k"))
		unblock := b.block()
		b.cut()
		place := s.wait(s.client("urgent"), client.Request{Keys: []interlock.Key{"k"}, OnConflict: interlock.Preempt})
		place.queued()
		synctest.Wait()
		unblock()
		await(t, lease.Asked(), "a request to yield")
		if y := lease.Yield(); y == nil || y.Agent != "urgent" {
			t.Errorf("yield %+v", y)
		}
		s.release(lease, "")
		place.granted()
	})
}
