package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/shard"
)

// broken is a world that can cut its client's links.
func broken(t *testing.T, w *world, cfg client.Config) (*stage, *breaker, *client.Client) {
	b := &breaker{dial: w.inside}
	s := &stage{t: t, w: w, ctx: context.Background(), client: func(agent string) *client.Client {
		return w.dial(client.Config{Agent: agent})
	}}
	return s, b, w.connect(b.Dial, cfg)
}

// answers reports whether a frame holds an answer with this outcome.
func answers(outcome interlock.Outcome, held func(*proto.Reply) bool) func(*proto.ServerFrame) bool {
	return func(f *proto.ServerFrame) bool {
		for i := range f.Replies {
			if r := &f.Replies[i]; r.Outcome == outcome && r.Seq != 0 && (held == nil || held(r)) {
				return true
			}
		}
		return false
	}
}

func TestLostGrantIsFoundAgain(t *testing.T) {
	s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	var lost interlock.Lease
	b.setLose(answers(proto.Granted, func(r *proto.Reply) bool { lost = r.Lease; return true }))
	lease := s.acquire(c, exclusively("k"))
	if lost.Fence == 0 || lease.Fence() != lost.Fence || lease.ID() != lost.ID {
		t.Errorf("the lost answer had lease %v fence %d, now %v fence %d", lost.ID, lost.Fence, lease.ID(), lease.Fence())
	}
	s.release(lease, "")
	s.acquire(s.client("b"), client.Request{Keys: []interlock.Key{"k"}})
}

func TestLostReleaseHappensOnce(t *testing.T) {
	s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	lease := s.acquire(c, exclusively("k"))
	b.setLose(answers(proto.Done, func(r *proto.Reply) bool { return r.Session == nil }))
	s.release(lease, "once")
	next := s.acquire(s.client("b"), client.Request{Keys: []interlock.Key{"k"}})
	if notes := next.Notes(); len(notes) != 1 || notes[0].Text != "once" {
		t.Errorf("notes %+v", notes)
	}
}

func TestWaitSurvivesReconnectInItsPlace(t *testing.T) {
	s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	first := s.acquire(s.client("holder"), exclusively("k"))
	mine := s.wait(c, exclusively("k"))
	ticket := mine.queued()
	other := s.wait(s.client("b"), exclusively("k"))
	other.queued()
	b.cut()
	if again := mine.queued(); again.ID != ticket.ID || again.Position != 1 || again.Length != 2 {
		t.Errorf("first %+v, then %+v", ticket, again)
	}
	s.release(first, "")
	lease := mine.granted()
	s.release(lease, "")
	other.granted()
}

// More waits than may be under way at once go back to the line nevertheless.
func TestManyWaitsSurviveReconnect(t *testing.T) {
	s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	first := s.acquire(s.client("holder"), exclusively("k"))
	const waiters = 6000
	queued, granted := make(chan struct{}, 2*waiters), make(chan *client.Lease, waiters)
	ctx, cancel := context.WithCancel(s.ctx)
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			req := exclusively("k")
			req.OnQueued = func(interlock.Ticket, []interlock.Holder) { queued <- struct{}{} }
			if lease, err := c.Acquire(ctx, req); err == nil {
				granted <- lease
			}
		})
	}
	for range waiters {
		await(t, queued, "a place in line")
	}
	b.cut()
	for range waiters {
		await(t, queued, "a place in line")
	}
	s.release(first, "")
	lease := await(t, granted, "the next grant")
	cancel()
	all.Wait()
	s.release(lease, "")
	s.acquire(s.client("b"), exclusively("k"))
}

// A wait may be granted while its client is away, and found when it comes back.
func TestGrantWhileAway(t *testing.T) {
	s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	first := s.acquire(s.client("holder"), exclusively("k"))
	mine := s.wait(c, exclusively("k"))
	mine.queued()
	b.setLose(answers(proto.Granted, nil))
	s.release(first, "")
	lease := mine.granted()
	if err := c.CheckFence(s.ctx, "k", lease.Fence()); err != nil {
		t.Error(err)
	}
}

// The lease of a request that was abandoned while its answer was lost is released.
func TestForgottenGrantIsReleased(t *testing.T) {
	s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	lost := make(chan struct{})
	unblock := b.block()
	b.setLose(answers(proto.Granted, func(*proto.Reply) bool { close(lost); return true }))
	ctx, cancel := context.WithCancel(s.ctx)
	s.ctx = ctx
	mine := s.wait(c, exclusively("k"))
	await(t, lost, "the grant whose answer is lost")
	cancel()
	err := mine.refused()
	if !isCode(err, interlock.CodeOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	s.ctx = context.Background()
	place := s.wait(s.client("b"), exclusively("k"))
	place.queued()
	unblock()
	place.granted()
}

func TestServerRestartKeepsSessionAndLine(t *testing.T) {
	w := onDisk(t)
	w.listen()
	s := &stage{t: t, w: w, ctx: context.Background(), client: func(agent string) *client.Client {
		c, err := client.Dial(context.Background(), client.Config{Addrs: []string{w.addr}, Agent: agent})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeClient(t, c) })
		return c
	}}
	a, b := s.client("a"), s.client("b")
	name := a.SessionName()
	held := s.acquire(a, exclusively("k"))
	ctx := held.Context()
	first := s.wait(b, exclusively("k"))
	ticket := first.queued()
	second := s.wait(s.client("c"), exclusively("k"))
	second.queued()

	w.restart()

	if again := first.queued(); again.ID != ticket.ID || again.Position != 1 {
		t.Errorf("first %+v, then %+v", ticket, again)
	}
	if again := second.queued(); again.Position != 2 {
		t.Errorf("second %+v", again)
	}
	if err := a.CheckFence(s.ctx, "k", held.Fence()); err != nil || ctx.Err() != nil || a.SessionName() != name {
		t.Errorf("after the restart: %v, %v, session %s was %s", err, ctx.Err(), a.SessionName(), name)
	}
	s.release(held, "")
	next := first.granted()
	if next.Fence() <= held.Fence() || next.At().Epoch <= held.At().Epoch {
		t.Errorf("fence %d epoch %d after %d and %d", next.Fence(), next.At().Epoch, held.Fence(), held.At().Epoch)
	}
	s.release(next, "")
	second.granted()
}

// While a server shuts down nothing is granted; the request is asked again and
// granted by the next one.
func TestAcquireOverAShutdown(t *testing.T) {
	s, _, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	s.w.srv.Drain()
	if err := s.w.shard.Drain(s.ctx); err != nil {
		t.Fatal(err)
	}
	mine := s.wait(c, exclusively("k"))
	s.w.restart()
	mine.granted()
}

// The session ended while the client was away: its leases are lost, its next requests get a new
// session, and a flow that lost something learns of it.
func TestSessionEndedMeanwhile(t *testing.T) {
	s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	lease := s.acquire(c, client.Request{Keys: []interlock.Key{"k"}, Flow: "one"})
	s.acquire(s.client("b"), exclusively("x"))
	mine := s.wait(c, client.Request{Keys: []interlock.Key{"x"}, Flow: "one", OnConflict: interlock.Wait})
	mine.queued()
	free := s.wait(c, client.Request{Keys: []interlock.Key{"x"}, Flow: "two", OnConflict: interlock.Wait})
	if free.queued().Position != 2 {
		t.Error("not second in line")
	}
	name := c.SessionName()

	// End it behind the client's back, by another link to the same session.
	unblock := b.block()
	b.cut()
	endSession(t, s.w, "a")
	unblock()

	await(t, lease.Context().Done(), "the end of the lease")
	if !isCode(lease.Err(), interlock.CodeSessionEnded) {
		t.Errorf("lease: %v", lease.Err())
	}
	if err := lease.Release(s.ctx, client.Outcome{}); !isCode(err, interlock.CodeSessionEnded) {
		t.Errorf("release: %v", err)
	}
	if err := mine.refused(); !isCode(err, interlock.CodeSessionEnded) {
		t.Errorf("wait of the same flow: %v", err)
	}
	if again := free.queued(); again.Position != 1 {
		t.Errorf("wait of another flow: %+v", again)
	}
	s.acquire(c, client.Request{Keys: []interlock.Key{"k"}})
	if c.SessionName() == name {
		t.Error("the session has the name of the one that ended")
	}
}

// endSession closes the session of an agent; a journal entry contains its id.
func endSession(t *testing.T, w *world, agent string) {
	t.Helper()
	found := errors.New("found")
	var id interlock.SessionID
	err := w.shard.Follow(context.Background(), shard.Follower{
		Namespace: "default",
		Visit: func(_ interlock.Index, _ interlock.Epoch, events []record.Event) error {
			for i := range events {
				if ev := &events[i]; ev.Kind == record.SessionOpened && ev.Agent == agent {
					id = ev.ID
					return found
				}
			}
			return nil
		},
	})
	if !errors.Is(err, found) {
		t.Fatal(err)
	}
	eff, _, err := w.shard.Do(
		context.Background(), &engine.CloseSession{Head: engine.Head{Namespace: "default", Session: id}},
	)
	if err != nil || eff.Outcome != engine.Done {
		t.Fatal(eff, err)
	}
}

func TestHeartbeatsKeepALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a", SessionTTL: 10 * time.Second})
		lease := s.acquire(c, client.Request{Keys: []interlock.Key{"k"}, Terms: interlock.Terms{TTL: 2 * time.Second}})
		<-time.After(5 * time.Minute)
		if lease.Err() != nil {
			t.Fatal(lease.Err())
		}
		// A short break of the connection does no harm.
		unblock := b.block()
		b.cut()
		<-time.After(time.Second)
		unblock()
		<-time.After(time.Minute)
		if lease.Err() != nil {
			t.Fatal(lease.Err())
		}
		select {
		case <-lease.Warned():
			t.Error("a lease that lives by heartbeats was warned of")
		default:
		}
		s.release(lease, "")
	})
}

// A lease with a ttl that is shorter than the time since the session's last
// heartbeat is good nevertheless, also when it is granted after a wait.
func TestShortLeaseInALongSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, c := broken(t, inMemory(t), client.Config{Agent: "a", SessionTTL: time.Hour})
		<-time.After(5 * time.Minute)
		lease := s.acquire(c, client.Request{Keys: []interlock.Key{"k"}, Terms: interlock.Terms{TTL: time.Second}})
		<-time.After(time.Minute)
		if lease.Err() != nil {
			t.Fatal(lease.Err())
		}
		place := s.wait(
			c, client.Request{Keys: []interlock.Key{"k"}, Terms: interlock.Terms{TTL: time.Second}, OnConflict: interlock.Wait},
		)
		place.queued()
		<-time.After(time.Hour)
		s.release(lease, "")
		lease = place.granted()
		<-time.After(time.Hour)
		if lease.Err() != nil {
			t.Fatal(lease.Err())
		}
		s.release(lease, "")
	})
}

// A flow that lost its lease by the client's own clock learns of it, too.
func TestWaitOfAFlowThatGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a", SessionTTL: 6 * time.Second})
		s.acquire(s.client("b"), exclusively("x"))
		lease := s.acquire(c, client.Request{Keys: []interlock.Key{"k"}, Flow: "one"})
		mine := s.wait(c, client.Request{Keys: []interlock.Key{"x"}, Flow: "one", OnConflict: interlock.Wait})
		mine.queued()
		other := s.wait(c, client.Request{Keys: []interlock.Key{"x"}, Flow: "two", OnConflict: interlock.Wait})
		other.queued()
		unblock := b.block()
		b.cut()
		<-lease.Context().Done()
		<-time.After(time.Minute)
		unblock()
		if err := mine.refused(); !isCode(err, interlock.CodeSessionEnded) {
			t.Errorf("got %v", err)
		}
		other.queued()
	})
}

// Without a confirmed heartbeat the client drops the lease by its own clock, and before the
// server grants it to the next, however late the last answer came.
func TestClientGivesUpNoLaterThanTheServer(t *testing.T) {
	t.Run("ttl", func(t *testing.T) {
		givesUp(
			t, client.Config{Agent: "a", SessionTTL: 6 * time.Second},
			client.Request{Keys: []interlock.Key{"k"}, Terms: interlock.Terms{Grace: client.NoGrace}}, 300*time.Millisecond,
		)
	})
	t.Run("max_hold", func(t *testing.T) {
		givesUp(
			t, client.Config{Agent: "a"},
			client.Request{Keys: []interlock.Key{"k"}, Terms: interlock.Terms{Grace: client.NoGrace, MaxHold: 10 * time.Second}},
			0,
		)
	})
}

// givesUp makes a client lose its link while it holds a lease, and compares when it drops the
// lease with when the next one has the key.
func givesUp(t *testing.T, cfg client.Config, req client.Request, delay time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), cfg)
		b.delay(delay)
		lease := s.acquire(c, req)
		place := s.wait(s.client("b"), exclusively("k"))
		place.queued()
		<-time.After(5 * time.Second) // heartbeats were confirmed since
		unblock := b.block()
		b.cut()
		gaveUp := make(chan time.Time, 1)
		context.AfterFunc(lease.Context(), func() { gaveUp <- time.Now() })
		next := place.granted()
		granted := time.Now()
		synctest.Wait() // nothing takes time here, so both may do it in the same moment
		select {
		case at := <-gaveUp:
			if at.After(granted) {
				t.Errorf("given up %v after the key was granted to the next", at.Sub(granted))
			}
		default:
			t.Error("the key was granted to the next, and the client still counts its lease as held")
		}
		if !isCode(lease.Err(), interlock.CodeExpired) {
			t.Errorf("err %v", lease.Err())
		}
		unblock()
		s.release(next, "")
		// The client is back with a new session, and everything works.
		s.acquire(c, exclusively("k"))
	})
}

// A silent link is given up, and another one made, before the session ends.
func TestSilentLinkIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(t)
		stall := make(chan struct{})
		dials := 0
		c := w.connect(func(ctx context.Context, hello proto.Hello) (proto.ClientLink, error) {
			link, err := w.door.Dial(ctx, hello)
			if dials++; dials == 1 && err == nil {
				link = &stallingLink{ClientLink: link, stall: stall, closed: make(chan struct{})}
			}
			return link, err
		}, client.Config{Agent: "a"})
		s := &stage{t: t, w: w, ctx: context.Background()}
		lease := s.acquire(c, exclusively("k"))
		close(stall)
		<-time.After(5 * time.Minute)
		if lease.Err() != nil || dials != 2 {
			t.Errorf("err %v after %d links", lease.Err(), dials)
		}
		s.release(lease, "")
	})
}

// stallingLink receives nothing any more once stall is closed.
type stallingLink struct {
	proto.ClientLink
	stall  chan struct{}
	closed chan struct{}
}

func (l *stallingLink) Recv(f *proto.ServerFrame) error {
	if err := l.ClientLink.Recv(f); err != nil {
		return err
	}
	select {
	case <-l.stall:
		<-l.closed
		return errors.New("closed")
	default:
		return nil
	}
}

func (l *stallingLink) Close(reason *interlock.Error) {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	l.ClientLink.Close(reason)
}

// A release that could not be reported is not forgotten.
func TestReleaseDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a", RetryFor: time.Second, SessionTTL: time.Hour})
		first, second := s.acquire(c, exclusively("one")), s.acquire(c, exclusively("two"))
		b.refuse(errors.New("connection refused"))
		b.cut()
		<-time.After(time.Second) // until the client has seen it
		if err := first.Release(s.ctx, client.Outcome{}); !isCode(err, interlock.CodeOutcomeUnknown) {
			t.Errorf("first: %v", err)
		}
		ctx, cancel := context.WithTimeout(s.ctx, time.Millisecond)
		defer cancel()
		if err := second.Release(ctx, client.Outcome{}); !isCode(err, interlock.CodeOutcomeUnknown) {
			t.Errorf("second: %v", err)
		}
		b.refuse(nil)
		s.acquire(s.client("b"), exclusively("one", "two"))
	})
}

func TestProgressIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, c := broken(t, inMemory(t), client.Config{Agent: "a"})
		s.acquire(c, exclusively("k"))
		const letters = interlock.MaxProgressBytes / 2
		for text, want := range map[string]string{
			"3/5 files":                         "3/5 files",
			strings.Repeat("é", letters+1):      strings.Repeat("é", letters),
			"x" + strings.Repeat("é", letters):  "x" + strings.Repeat("é", letters-1), // the last letter does not fit whole
			"xy" + strings.Repeat("é", letters): "xy" + strings.Repeat("é", letters-1),
		} {
			c.SetProgress(text)
			<-time.After(15 * time.Second)
			_, err := s.client("b").Acquire(s.ctx, client.Request{Keys: []interlock.Key{"k"}})
			refusal, ok := errors.AsType[*interlock.Error](err)
			if !ok || len(refusal.Holders) != 1 || refusal.Holders[0].Progress != want ||
				refusal.Holders[0].Liveness != interlock.Live {
				t.Errorf("got %+v, want %q", err, want)
			}
		}
	})
}

// A client with an expired credential reports so at once, and not that no server answers.
func TestRefusedWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
		b.refuse(&interlock.Error{Code: interlock.CodeUnauthenticated, Message: "unknown credential"})
		b.cut()
		synctest.Wait() // else the request may still go out on the link that is cut
		if _, err := c.Acquire(s.ctx, exclusively("k")); !isCode(err, interlock.CodeUnauthenticated) {
			t.Errorf("got %v", err)
		}
		b.refuse(nil)
		<-time.After(10 * time.Second)
		s.acquire(c, exclusively("k"))
	})
}

func TestRetryForBoundsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a", RetryFor: 3 * time.Second, SessionTTL: time.Hour})
		lease := s.acquire(c, exclusively("other"))
		place := s.wait(c, exclusively("other"))
		place.queued()
		b.refuse(errors.New("connection refused"))
		b.cut()
		synctest.Wait()
		began := time.Now()
		_, err := c.Acquire(s.ctx, exclusively("k"))
		if !errors.Is(err, client.ErrUnreachable) || time.Since(began) < 3*time.Second || time.Since(began) > 10*time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		if err := place.refused(); !isCode(err, interlock.CodeOutcomeUnknown) {
			t.Errorf("wait: %v", err)
		}
		if err := c.CheckFence(s.ctx, "k", 1); !errors.Is(err, client.ErrUnreachable) {
			t.Errorf("check: %v", err)
		}
		b.refuse(nil)
		// The place in line that was given up is left: the release grants nothing.
		s.acquire(c, exclusively("k"))
		s.release(lease, "")
		s.acquire(c, client.Request{Keys: []interlock.Key{"other"}})
	})
}
