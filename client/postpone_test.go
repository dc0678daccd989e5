package client_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/proto"
)

// scripted plays a server's part beside a client's, with a virtual clock.
func scripted(t *testing.T, server func(s *script), play func(c *client.Client)) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, links: make(chan proto.ServerLink, 1)}
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			s.answer(s.next(proto.OpOpen))
			s.answer(s.next(proto.OpAttach))
			server(s)
			s.answer(s.next(proto.OpClose))
		}()
		c, err := client.New(context.Background(), s.Dial, client.Config{SessionTTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		play(c)
		closeClient(t, c)
		<-finished
	})
}

// overQuota refuses an operation as the door does, with room again after a second.
func (s *script) overQuota(op proto.Op) {
	s.t.Helper()
	s.say(proto.Reply{
		Slot: op.Slot, Seq: op.Seq, Outcome: proto.Refused, Code: interlock.CodeQuota, Message: "too many requests a second",
		Advice: &interlock.Advice{Action: interlock.ActRetry, RetryAfter: time.Second},
	})
}

func (s *script) grant(op proto.Op) {
	s.t.Helper()
	s.say(proto.Reply{Slot: op.Slot, Seq: op.Seq, Outcome: proto.Granted, Lease: interlock.Lease{
		ID: [16]byte{2}, Fence: 7, TTL: time.Hour, Claims: op.Claims, State: interlock.Held,
	}})
}

// A call that is refused for want of quota is sent again when there is room, under a new
// number, and never at a fixed interval.
func TestOverQuotaIsHeldBack(t *testing.T) {
	scripted(t, func(s *script) {
		var last proto.Op
		seen := map[time.Duration]bool{}
		for range 8 {
			op := s.next(proto.OpAcquire)
			if op.Seq <= last.Seq {
				t.Errorf("number %d after %d", op.Seq, last.Seq)
			}
			last = op
			before := time.Now()
			s.overQuota(op)
			again := s.next(proto.OpAcquire)
			pause := time.Since(before)
			if pause <= 0 || pause > 6*time.Second || seen[pause] {
				t.Errorf("sent again after %v", pause)
			}
			seen[pause] = true
			s.ops = append(s.ops, again)
		}
		s.grant(s.next(proto.OpAcquire))
		s.overQuota(s.next(proto.OpCheckFence))
		s.answer(s.next(proto.OpCheckFence))
	}, func(c *client.Client) {
		lease, err := c.Acquire(context.Background(), exclusively("k"))
		if err != nil || lease.Fence() != 7 {
			t.Error(lease, err)
		}
		if err := c.CheckFence(context.Background(), "k", 7); err != nil {
			t.Error(err)
		}
	})
}

// A call that may have been carried out already is sent again under its own number.
func TestOverQuotaOfARepetition(t *testing.T) {
	scripted(t, func(s *script) {
		first := s.next(proto.OpAcquire)
		s.cut() // its answer is lost
		s.answer(s.next(proto.OpAttach))
		for range 3 {
			op := s.next(proto.OpAcquire)
			if op.Seq != first.Seq {
				t.Errorf("number %d instead of %d", op.Seq, first.Seq)
			}
			s.overQuota(op)
		}
		op := s.next(proto.OpAcquire)
		if op.Seq != first.Seq {
			t.Errorf("number %d instead of %d", op.Seq, first.Seq)
		}
		s.grant(op)
	}, func(c *client.Client) {
		if lease, err := c.Acquire(context.Background(), exclusively("k")); err != nil || lease.Fence() != 7 {
			t.Error(lease, err)
		}
	})
}

// A place in line is not lost because no client may ask after it for a moment.
func TestOverQuotaOfAPoll(t *testing.T) {
	scripted(t, func(s *script) {
		op := s.next(proto.OpAcquire)
		s.say(proto.Reply{
			Slot: op.Slot, Seq: op.Seq, Outcome: proto.Queued,
			Ticket: &interlock.Ticket{ID: [16]byte{2}, Position: 1, Length: 1},
		})
		s.cut()
		s.answer(s.next(proto.OpAttach))
		s.overQuota(s.next(proto.OpPoll))
		s.overQuota(s.next(proto.OpPoll))
		poll := s.next(proto.OpPoll)
		poll.Claims = op.Claims
		s.grant(poll)
	}, func(c *client.Client) {
		if lease, err := c.Acquire(context.Background(), exclusively("k")); err != nil || lease.Fence() != 7 {
			t.Error(lease, err)
		}
	})
}

// A caller that stops waiting meanwhile gets the error that it never happened, and it never
// does.
func TestOverQuotaAndGivenUp(t *testing.T) {
	scripted(t, func(s *script) {
		s.overQuota(s.next(proto.OpAcquire))
	}, func(c *client.Client) {
		ctx, cancel := context.WithCancelCause(context.Background())
		go func() {
			synctest.Wait() // it is held back
			cancel(errStopped)
		}()
		_, err := c.Acquire(ctx, exclusively("k"))
		if !errors.Is(err, errStopped) || isCode(err, interlock.CodeOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
		<-time.After(time.Minute) // the next that the server hears is the end of the session
	})
}
