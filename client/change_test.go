package client_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/proto"
)

// Held leases that change: conversions and barriers.
var changeScenarios = []scenario{
	{"a lease is converted up and down", func(t *testing.T, s *stage) {
		c, other := s.client("a"), s.client("b")
		lease := s.acquire(c, client.Request{Keys: []interlock.Key{"k"}, Mode: interlock.Shared})
		fence := lease.Fence()
		s.convert(lease, interlock.Claim{Key: "k"}, interlock.Claim{Key: "l", Mode: interlock.Shared})
		if lease.Fence() <= fence || len(lease.Claims()) != 2 || lease.Claims()[0].Mode != interlock.Exclusive ||
			lease.Err() != nil {
			t.Errorf("converted to %+v", lease.Info())
		}
		if err := c.CheckFence(s.ctx, "k", fence); !isCode(err, interlock.CodeFenced) {
			t.Errorf("the fence of before: %v", err)
		}
		if err := c.CheckFence(s.ctx, "k", lease.Fence()); err != nil {
			t.Error(err)
		}
		if _, err := other.Acquire(
			s.ctx, client.Request{Keys: []interlock.Key{"k"}, Mode: interlock.Shared},
		); !isCode(err, interlock.CodeHeld) {
			t.Errorf("a reader beside the writer: %v", err)
		}
		s.convert(lease, interlock.Claim{Key: "k", Mode: interlock.Shared})
		s.acquire(other, client.Request{Keys: []interlock.Key{"k"}, Mode: interlock.Shared})
		s.acquire(other, exclusively("l"))
		s.release(lease, "")
	}},
	{"an upgrade waits ahead of new requests", func(t *testing.T, s *stage) {
		reader := func(agent string) *client.Lease {
			return s.acquire(s.client(agent), client.Request{Keys: []interlock.Key{"k"}, Mode: interlock.Shared})
		}
		mine, other := reader("a"), reader("b")
		late := s.wait(s.client("late"), exclusively("k"))
		late.queued()
		up := s.converting(mine)
		if ticket := up.queued(); ticket.Position != 1 {
			t.Errorf("ticket %+v", ticket)
		}
		s.release(other, "")
		up.done()
		if mine.Claims()[0].Mode != interlock.Exclusive {
			t.Errorf("claims %+v", mine.Claims())
		}
		s.release(mine, "")
		late.granted()
	}},
	{"of two upgrading readers the second is told at once", func(t *testing.T, s *stage) {
		req := client.Request{Keys: []interlock.Key{"k"}, Mode: interlock.Shared}
		first, second := s.acquire(s.client("a"), req), s.acquire(s.client("b"), req)
		up := s.converting(first)
		up.queued()
		err := second.Convert(s.ctx, client.Conversion{Claims: []interlock.Claim{{Key: "k"}}, OnConflict: interlock.Wait})
		refusal, ok := errors.AsType[*interlock.Error](err)
		if !ok || refusal.Code != interlock.CodeDeadlock || len(refusal.Cycle) != 2 {
			t.Errorf("got %+v", err)
		}
		if second.Err() != nil || second.Claims()[0].Mode != interlock.Shared {
			t.Errorf("the refused one has %+v, %v", second.Claims(), second.Err())
		}
		s.release(second, "")
		up.done()
	}},
	{"a conversion that is given up leaves the lease as it was", func(t *testing.T, s *stage) {
		req := client.Request{Keys: []interlock.Key{"k"}, Mode: interlock.Shared}
		c := s.client("a")
		mine, other := s.acquire(c, req), s.acquire(s.client("b"), req)
		fence := mine.Fence()
		ctx, cancel := context.WithCancelCause(s.ctx)
		s.ctx = ctx
		up := s.converting(mine)
		up.queued()
		cancel(errStopped)
		if err := up.refused(); !errors.Is(err, errStopped) {
			t.Errorf("got %v", err)
		}
		s.ctx = context.Background()
		_ = c.CheckFence(s.ctx, "k", fence) // its answer comes after the line was left
		s.release(other, "")
		s.acquire(s.client("c"), req)
		if mine.Fence() != fence || mine.Err() != nil || mine.Claims()[0].Mode != interlock.Shared {
			t.Errorf("now %+v, %v", mine.Info(), mine.Err())
		}
		s.release(mine, "")
	}},
	{"a lease that was lost or released is not converted", func(t *testing.T, s *stage) {
		lease := s.acquire(s.client("a"), exclusively("k"))
		s.release(lease, "")
		if err := lease.Convert(
			s.ctx, client.Conversion{Claims: []interlock.Claim{{Key: "k"}}},
		); !isCode(err, interlock.CodeReleased) {
			t.Errorf("got %v", err)
		}
		if err := lease.Arrive(s.ctx, client.Arrival{}); !isCode(err, interlock.CodeReleased) {
			t.Errorf("got %v", err)
		}
	}},
	{"a barrier of three, over several phases", func(t *testing.T, s *stage) {
		parties := s.barrier("release:7", 3)
		for phase := uint64(1); phase <= 3; phase++ {
			var fences []interlock.Fence
			for _, lease := range parties {
				if lease.Generation() != phase {
					t.Errorf("generation %d in phase %d", lease.Generation(), phase)
				}
				fences = append(fences, lease.Fence())
			}
			var there []*change
			for _, lease := range parties {
				there = append(there, s.arriving(lease))
			}
			for i, arrival := range there {
				arrival.done()
				if parties[i].Fence() <= slices.Max(fences) {
					t.Errorf("fence %d after %v", parties[i].Fence(), fences)
				}
			}
		}
	}},
	{"a barrier breaks when a party leaves", func(t *testing.T, s *stage) {
		parties := s.barrier("release:7", 3)
		waiting := s.arriving(parties[0])
		waiting.queued()
		s.release(parties[1], "")
		if err := waiting.refused(); !isCode(err, interlock.CodeBroken) {
			t.Errorf("who waited: %v", err)
		}
		if err := parties[2].Arrive(s.ctx, client.Arrival{}); !isCode(err, interlock.CodeBroken) {
			t.Errorf("who came later: %v", err)
		}
		if parties[2].Err() != nil {
			t.Errorf("its lease: %v", parties[2].Err())
		}
	}},
}

// change is a conversion or an arrival that is under way.
type change struct {
	t       *testing.T
	tickets chan interlock.Ticket
	over    chan error
}

func (s *stage) begin(do func(ctx context.Context, queued func(interlock.Ticket, []interlock.Holder)) error) *change {
	c := &change{t: s.t, tickets: make(chan interlock.Ticket, 16), over: make(chan error, 1)}
	ctx := s.ctx
	go func() {
		c.over <- do(ctx, func(ticket interlock.Ticket, _ []interlock.Holder) { c.tickets <- ticket })
	}()
	return c
}

func (c *change) queued() interlock.Ticket {
	c.t.Helper()
	select {
	case ticket := <-c.tickets:
		return ticket
	case err := <-c.over:
		c.t.Fatalf("it was over at once: %v", err)
	}
	return interlock.Ticket{}
}

func (c *change) done() {
	c.t.Helper()
	if err := <-c.over; err != nil {
		c.t.Fatal(err)
	}
}

func (c *change) refused() error {
	c.t.Helper()
	err := <-c.over
	if err == nil {
		c.t.Fatal("it was carried out")
	}
	return err
}

func (s *stage) convert(lease *client.Lease, claims ...interlock.Claim) {
	s.t.Helper()
	if err := lease.Convert(s.ctx, client.Conversion{Claims: claims}); err != nil {
		s.t.Fatal(err)
	}
}

// converting waits for the key of a lease exclusively.
func (s *stage) converting(lease *client.Lease) *change {
	return s.begin(func(ctx context.Context, queued func(interlock.Ticket, []interlock.Holder)) error {
		return lease.Convert(
			ctx, client.Conversion{Claims: []interlock.Claim{{Key: lease.Key()}}, OnConflict: interlock.Wait, OnQueued: queued},
		)
	})
}

func (s *stage) arriving(lease *client.Lease) *change {
	return s.begin(func(ctx context.Context, queued func(interlock.Ticket, []interlock.Holder)) error {
		return lease.Arrive(ctx, client.Arrival{OnQueued: queued})
	})
}

// barrier gathers the parties of a barrier, each a client of its own.
func (s *stage) barrier(key interlock.Key, count uint32) (leases []*client.Lease) {
	s.t.Helper()
	var places []*place
	for range count {
		places = append(places, s.wait(s.client("party"), client.Request{
			Claims: []interlock.Claim{{Key: key, Mode: interlock.Barrier, Count: count}}, OnConflict: interlock.Wait,
		}))
	}
	for _, p := range places {
		leases = append(leases, p.granted())
	}
	return leases
}

// Conversions and arrivals happen once, and their waits go on, whatever becomes of
// the link.

func TestLostConversionIsFoundAgain(t *testing.T) {
	s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	lease := s.acquire(c, client.Request{Keys: []interlock.Key{"k"}, Mode: interlock.Shared})
	var lost interlock.Lease
	b.setLose(answers(proto.Granted, func(r *proto.Reply) bool { lost = r.Lease; return true }))
	s.convert(lease, interlock.Claim{Key: "k"})
	if lost.Fence == 0 || lease.Fence() != lost.Fence {
		t.Errorf("the lost answer had fence %d, now %d", lost.Fence, lease.Fence())
	}
	s.release(lease, "")
	s.acquire(s.client("b"), client.Request{Keys: []interlock.Key{"k"}})
}

func TestConversionSurvivesReconnectInItsPlace(t *testing.T) {
	s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	req := client.Request{Keys: []interlock.Key{"k"}, Mode: interlock.Shared}
	mine, other := s.acquire(c, req), s.acquire(s.client("b"), req)
	up := s.converting(mine)
	ticket := up.queued()
	b.cut()
	if again := up.queued(); again.ID != ticket.ID || again.Position != 1 {
		t.Errorf("first %+v, then %+v", ticket, again)
	}
	s.release(other, "")
	up.done()
	if mine.Claims()[0].Mode != interlock.Exclusive {
		t.Errorf("claims %+v", mine.Claims())
	}
	s.release(mine, "")
}

// A conversion may be granted while its client is away.
func TestConversionGrantedWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
		req := client.Request{Keys: []interlock.Key{"k"}, Mode: interlock.Shared}
		mine, other := s.acquire(c, req), s.acquire(s.client("b"), req)
		fence := mine.Fence()
		up := s.converting(mine)
		up.queued()
		unblock := b.block()
		b.cut()
		synctest.Wait()
		s.release(other, "")
		unblock()
		up.done()
		if mine.Fence() <= fence || mine.Claims()[0].Mode != interlock.Exclusive {
			t.Errorf("now %+v", mine.Info())
		}
		s.release(mine, "")
		s.acquire(s.client("c"), client.Request{Keys: []interlock.Key{"k"}})
	})
}

// A conversion that was given up in the moment in which it was granted is found
// out: the handle has the fence and the claims that the server knows.
func TestConversionGivenUpTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
		req := client.Request{Keys: []interlock.Key{"k"}, Mode: interlock.Shared}
		mine, other := s.acquire(c, req), s.acquire(s.client("b"), req)
		fence := mine.Fence()
		ctx, cancel := context.WithCancelCause(s.ctx)
		s.ctx = ctx
		up := s.converting(mine)
		up.queued()
		unblock := b.block()
		b.cut()
		synctest.Wait()
		s.ctx = context.Background()
		s.release(other, "")
		cancel(errStopped)
		if err := up.refused(); !errors.Is(err, errStopped) {
			t.Errorf("got %v", err)
		}
		unblock()
		<-time.After(10 * time.Second)
		if mine.Fence() <= fence || mine.Claims()[0].Mode != interlock.Exclusive {
			t.Errorf("the server has converted it, here it has fence %d and %+v", mine.Fence(), mine.Claims())
		}
		if err := c.CheckFence(s.ctx, "k", mine.Fence()); err != nil {
			t.Error(err)
		}
		if mine.Err() != nil {
			t.Errorf("the lease is lost: %v", mine.Err())
		}
		s.release(mine, "")
		s.acquire(s.client("c"), client.Request{Keys: []interlock.Key{"k"}})
	})
}

func TestArrivalSurvivesReconnect(t *testing.T) {
	s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	req := client.Request{
		Claims: []interlock.Claim{{Key: "phase", Mode: interlock.Barrier, Count: 2}}, OnConflict: interlock.Wait,
	}
	place := s.wait(c, req)
	place.queued()
	b.cut()
	place.queued()
	other := s.acquire(s.client("b"), req)
	mine := place.granted()
	arrival := s.arriving(mine)
	ticket := arrival.queued()
	b.cut()
	if again := arrival.queued(); again.ID != ticket.ID {
		t.Errorf("first %+v, then %+v", ticket, again)
	}
	if err := other.Arrive(s.ctx, client.Arrival{}); err != nil {
		t.Error(err)
	}
	arrival.done()
	if mine.Generation() != 2 || other.Generation() != 2 {
		t.Errorf("generations %d and %d", mine.Generation(), other.Generation())
	}
}
