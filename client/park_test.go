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
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/proto"
)

var parkScenarios = []scenario{
	{"a parked lease keeps its keys, and another process resumes it", func(t *testing.T, s *stage) {
		before := s.client("before")
		lease := s.acquire(before, client.Request{Keys: []interlock.Key{"k"}, Purpose: "refund"})
		ctx := lease.Context()
		s.park(lease, client.ParkRequest{Keys: interlock.ParkKeep, Reason: "refund 900.00?"})
		if !isCode(context.Cause(ctx), interlock.CodeParked) || !isCode(lease.Err(), interlock.CodeParked) {
			t.Errorf("cause %v, err %v", context.Cause(ctx), lease.Err())
		}
		if err := lease.Release(s.ctx, client.Outcome{}); !isCode(err, interlock.CodeParked) {
			t.Errorf("release of a parked one: %v", err)
		}
		if err := before.Close(s.ctx); err != nil {
			t.Error(err)
		}
		after := s.client("after")
		_, err := after.Acquire(s.ctx, client.Request{Keys: []interlock.Key{"k"}})
		refusal, ok := errors.AsType[*interlock.Error](err)
		if !ok || len(refusal.Holders) != 1 || refusal.Holders[0].Liveness != interlock.LiveParked ||
			refusal.Holders[0].Parking == nil || refusal.Holders[0].Parking.Reason != "refund 900.00?" {
			t.Errorf("meanwhile: %+v", err)
		}
		if _, err := after.Resume(s.ctx, lease.ID(), client.ResumeRequest{}); !isCode(err, interlock.CodeParked) {
			t.Errorf("resumed before the answer: %v", err)
		}
		if err := after.AnswerLease(s.ctx, lease.Fence(), interlock.Approved, "ann", "within policy"); err != nil {
			t.Fatal(err)
		}
		again, err := after.Resume(s.ctx, lease.ID(), client.ResumeRequest{Flow: "two"})
		if err != nil {
			t.Fatal(err)
		}
		if d := again.Decision(); d == nil || d.Verdict != interlock.Approved || d.By != "ann" || d.Reason != "within policy" {
			t.Errorf("decided as %+v", d)
		}
		info := again.Info()
		if info.ID != lease.ID() || again.Fence() <= lease.Fence() || again.Flow() != "two" || again.Changed() ||
			info.Session != after.SessionName() || info.State != interlock.Held {
			t.Errorf("resumed as %+v", info)
		}
		if err := after.CheckFence(s.ctx, "k", again.Fence()); err != nil {
			t.Error(err)
		}
		if _, err := after.Resume(s.ctx, lease.ID(), client.ResumeRequest{}); !isCode(err, interlock.CodeNotParked) {
			t.Errorf("resumed twice: %v", err)
		}
		s.release(again, "")
	}},
	{"who waits for the answer has the lease with it, or the denial", func(t *testing.T, s *stage) {
		a, boss := s.client("a"), s.client("boss")
		lease := s.acquire(a, exclusively("k"))
		s.park(lease, client.ParkRequest{Reason: "may I?"})
		back := s.resuming(a, lease.ID())
		if ticket := back.queued(); ticket.Position != 0 {
			t.Errorf("it stands in a line: %+v", ticket)
		}
		if err := boss.AnswerLease(s.ctx, lease.Fence(), interlock.Approved, "boss", ""); err != nil {
			t.Fatal(err)
		}
		lease = back.granted()
		if d := lease.Decision(); d == nil || d.By != "boss" {
			t.Errorf("decided as %+v", d)
		}
		s.park(lease, client.ParkRequest{Reason: "and this?"})
		asked := lease.Fence()
		denied := make(chan error, 1)
		waits := make(chan struct{}, 1)
		go func() {
			_, err := a.Resume(
				s.ctx, lease.ID(),
				client.ResumeRequest{
					OnConflict: interlock.Wait, OnQueued: func(interlock.Ticket, []interlock.Holder) { waits <- struct{}{} },
				},
			)
			denied <- err
		}()
		<-waits
		if err := boss.AnswerLease(s.ctx, asked, interlock.Denied, "boss", ""); err != nil {
			t.Fatal(err)
		}
		if err := <-denied; !isCode(err, interlock.CodeDenied) {
			t.Errorf("denied: %v", err)
		}
		again, err := a.Resume(s.ctx, lease.ID(), client.ResumeRequest{Unapproved: true})
		if err != nil {
			t.Fatal(err)
		}
		s.release(again, "")
	}},
	{"who resumes what was freed is told what moved", func(t *testing.T, s *stage) {
		a, b := s.client("a"), s.client("b")
		lease := s.acquire(a, exclusively("k", "l"))
		s.park(lease, client.ParkRequest{Keys: interlock.ParkFree})
		other := s.acquire(b, client.Request{Keys: []interlock.Key{"k"}})
		if _, err := a.Resume(s.ctx, lease.ID(), client.ResumeRequest{}); !isCode(err, interlock.CodeHeld) {
			t.Errorf("while another has it: %v", err)
		}
		late := s.wait(s.client("late"), exclusively("k"))
		late.queued()
		back := s.resuming(a, lease.ID())
		if ticket := back.queued(); ticket.Position != 1 {
			t.Errorf("it is not at its old place: %+v", ticket)
		}
		s.release(other, "rewritten")
		again := back.granted()
		if !again.Changed() || !slices.Equal(again.Moved(), []interlock.Key{"k"}) {
			t.Errorf("changed %v, moved %v", again.Changed(), again.Moved())
		}
		s.release(again, "")
		late.granted()
	}},
	{"a resumption that is given up in line leaves the lease parked", func(t *testing.T, s *stage) {
		a, b := s.client("a"), s.client("b")
		lease := s.acquire(a, exclusively("k"))
		s.park(lease, client.ParkRequest{Keys: interlock.ParkFree})
		other := s.acquire(b, exclusively("k"))
		ctx, cancel := context.WithCancelCause(s.ctx)
		s.ctx = ctx
		back := s.resuming(a, lease.ID())
		back.queued()
		cancel(errStopped)
		if err := back.refused(); !errors.Is(err, errStopped) {
			t.Errorf("got %v", err)
		}
		s.ctx = context.Background()
		_ = a.CheckFence(s.ctx, "k", 1) // its answer comes after the line was left
		s.release(other, "")
		again, err := b.Resume(s.ctx, lease.ID(), client.ResumeRequest{})
		if err != nil || !slices.Equal(again.Moved(), []interlock.Key{"k"}) {
			t.Fatalf("resumed after that: %+v, %v", again, err)
		}
		s.release(again, "")
	}},
	{"a parked lease is given back when the human says no", func(t *testing.T, s *stage) {
		c := s.client("a")
		lease := s.acquire(c, exclusively("k"))
		s.park(lease, client.ParkRequest{})
		if err := c.Discard(s.ctx, lease.ID(), client.Outcome{Outcome: "denied", Note: "not without a receipt"}); err != nil {
			t.Fatal(err)
		}
		next := s.acquire(s.client("b"), client.Request{Keys: []interlock.Key{"k"}})
		if notes := next.Notes(); len(notes) != 1 || notes[0].Outcome != "denied" {
			t.Errorf("notes %+v", notes)
		}
		if _, err := c.Resume(s.ctx, lease.ID(), client.ResumeRequest{}); !isCode(err, interlock.CodeReleased) {
			t.Errorf("resumed after that: %v", err)
		}
	}},
	{"what cannot be parked is said, and stays held", func(t *testing.T, s *stage) {
		s.pattern(interlock.Pattern{Name: "k", Shape: "k", Park: interlock.ParkNever})
		lease := s.acquire(s.client("a"), exclusively("k"))
		if err := lease.Park(s.ctx, client.ParkRequest{}); !isCode(err, interlock.CodeInvalidRequest) {
			t.Errorf("got %v", err)
		}
		if lease.Err() != nil {
			t.Error(lease.Err())
		}
		s.release(lease, "")
	}},
}

func (s *stage) park(lease *client.Lease, p client.ParkRequest) {
	s.t.Helper()
	if err := lease.Park(s.ctx, p); err != nil {
		s.t.Fatal(err)
	}
}

// resuming waits for a parked lease.
func (s *stage) resuming(c *client.Client, id interlock.LeaseID) *place {
	return s.stand(func(ctx context.Context, queued func(interlock.Ticket, []interlock.Holder)) (*client.Lease, error) {
		return c.Resume(ctx, id, client.ResumeRequest{OnConflict: interlock.Wait, OnQueued: queued})
	})
}

// The session that parked the lease dies; the lease does not.
func TestParkedLeaseOutlivesItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a", SessionTTL: 6 * time.Second})
		parked := s.acquire(c, exclusively("k"))
		held := s.acquire(c, exclusively("l"))
		s.park(parked, client.ParkRequest{Keys: interlock.ParkKeep, For: time.Hour})
		unblock := b.block()
		b.cut()
		<-time.After(10 * time.Minute)
		unblock()
		if held.Err() == nil {
			t.Error("the other lease outlived its session too")
		}
		again, err := c.Resume(s.ctx, parked.ID(), client.ResumeRequest{})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Minute)
		if again.Err() != nil {
			t.Error(again.Err())
		}
		s.release(again, "")
	})
}

// A lease with a ttl much shorter than its session's is good when it is resumed,
// at once and after a wait.
func TestResumedLeaseWithAShortTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, c := broken(t, inMemory(t), client.Config{Agent: "a", SessionTTL: time.Hour})
		lease := s.acquire(c, client.Request{Keys: []interlock.Key{"k"}, Terms: interlock.Terms{TTL: time.Second}})
		s.park(lease, client.ParkRequest{Keys: interlock.ParkFree})
		<-time.After(15 * time.Minute)
		lease, err := c.Resume(s.ctx, lease.ID(), client.ResumeRequest{})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if lease.Err() != nil {
			t.Fatal(lease.Err())
		}
		s.park(lease, client.ParkRequest{Keys: interlock.ParkFree})
		other := s.acquire(s.client("b"), exclusively("k"))
		back := s.resuming(c, lease.ID())
		back.queued()
		<-time.After(time.Hour)
		s.release(other, "")
		lease = back.granted()
		<-time.After(time.Minute)
		if lease.Err() != nil {
			t.Error(lease.Err())
		}
		s.release(lease, "")
	})
}

// The grant of a resumption crosses its being given up: the lease is parked as it was, whether
// it had kept its keys or not.
func TestGivenUpResumptionCrossesTheGrant(t *testing.T) {
	for _, keys := range []interlock.ParkPolicy{interlock.ParkKeep, interlock.ParkFree} {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
		lease := s.acquire(c, exclusively("k"))
		s.park(lease, client.ParkRequest{Keys: keys, For: time.Hour})
		lost := make(chan struct{})
		unblock := b.block()
		b.setLose(answers(proto.Granted, func(*proto.Reply) bool { close(lost); return true }))
		ctx, cancel := context.WithCancel(s.ctx)
		gaveUp := make(chan error, 1)
		go func() {
			_, err := c.Resume(ctx, lease.ID(), client.ResumeRequest{})
			gaveUp <- err
		}()
		await(t, lost, "the grant whose answer is under way")
		cancel()
		if err := await(t, gaveUp, "the end of the resumption"); !isCode(err, interlock.CodeOutcomeUnknown) ||
			!errors.Is(err, context.Canceled) {
			t.Errorf("%v: got %v", keys, err)
		}
		parked := make(chan struct{})
		b.setLose(doneAfterGrant(parked))
		unblock()
		await(t, parked, "the answer that it is parked again")
		again, err := s.client("b").Resume(busy.Context(t), lease.ID(), client.ResumeRequest{})
		if err != nil {
			t.Fatalf("%v: resumed after that: %v", keys, err)
		}
		s.release(again, "")
	}
}

// doneAfterGrant loses nothing, and closes a channel at the first answer "done" that follows
// an answer "granted".
func doneAfterGrant(done chan struct{}) func(*proto.ServerFrame) bool {
	var granted uint64
	return func(f *proto.ServerFrame) bool {
		for i := range f.Replies {
			switch r := &f.Replies[i]; {
			case r.Outcome == proto.Granted && r.Seq != 0 && granted == 0:
				granted = r.Seq
			case r.Outcome == proto.Done && granted != 0 && r.Seq > granted && done != nil:
				close(done)
				done = nil
			}
		}
		return false
	}
}

func TestLostParkingHappensOnce(t *testing.T) {
	s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	lease := s.acquire(c, exclusively("k"))
	b.setLose(answers(proto.Done, func(r *proto.Reply) bool { return r.Session == nil }))
	s.park(lease, client.ParkRequest{})
	var lost interlock.Lease
	b.setLose(answers(proto.Granted, func(r *proto.Reply) bool { lost = r.Lease; return true }))
	again, err := c.Resume(s.ctx, lease.ID(), client.ResumeRequest{})
	if err != nil || again.Fence() != lost.Fence || lost.Fence == 0 {
		t.Fatalf("%v: resumed under fence %d, the lost answer had %d", err, again.Fence(), lost.Fence)
	}
	s.release(again, "")
}

func TestResumptionSurvivesReconnectInItsPlace(t *testing.T) {
	s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	lease := s.acquire(c, exclusively("k"))
	s.park(lease, client.ParkRequest{Keys: interlock.ParkFree})
	other := s.acquire(s.client("b"), exclusively("k"))
	back := s.resuming(c, lease.ID())
	ticket := back.queued()
	b.cut()
	if again := back.queued(); again.ID != ticket.ID || again.Position != 1 {
		t.Errorf("first %+v, then %+v", ticket, again)
	}
	s.release(other, "")
	s.release(back.granted(), "")
}

// A resumption of a lease that does not exist any more is refused once and for all.
func TestNothingToResume(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		c := s.client("a")
		lease := s.acquire(c, exclusively("k"))
		s.park(lease, client.ParkRequest{For: time.Minute})
		<-time.After(time.Hour)
		ctx, cancel := context.WithTimeout(s.ctx, time.Hour)
		defer cancel()
		begun := time.Now()
		for id, want := range map[interlock.LeaseID]interlock.Code{
			lease.ID(): interlock.CodeExpired, freshID(): interlock.CodeUnknownLease,
		} {
			if _, err := c.Resume(ctx, id, client.ResumeRequest{}); !isCode(err, want) || time.Since(begun) != 0 {
				t.Errorf("got %v after %v", err, time.Since(begun))
			}
		}
	})
}
