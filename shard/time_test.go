package shard

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

func at(d time.Duration) engine.Time { return engine.Time(1_800_000_000e9).Add(d) }

// withClock sets a clock of the shard that advances only when the test moves it.
func withClock(c Clock) func(*Config) { return func(cfg *Config) { cfg.Clock = c } }

// A lease ends at its deadline without any call, and the key passes on.
func TestExpiry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clock := newFakeClock(at(0))
		r := newRig(t, withClock(clock))
		first := acquire(nil, "a")
		first.TTL, first.Grace = 10*time.Second, engine.NoGrace
		r.expect(engine.Granted, first)
		next := newInbox()
		r.submit(queue(next, "a"))
		if a := <-next.c; a.Outcome != engine.Queued {
			t.Fatalf("%v, want queued", a.Outcome)
		}
		clock.advance(10*time.Second - 1)
		synctest.Wait()
		if got := next.all(); len(got) != 1 {
			t.Fatalf("granted a nanosecond early: %+v", got[1:])
		}
		clock.advance(1)
		if a := <-next.c; a.Outcome != engine.Granted {
			t.Fatalf("%v, want granted", a.Outcome)
		}
	})
}

// The same with real time, as synctest fakes it: the clock's own alarm rings.
func TestExpiryByTheWallClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		first := acquire(nil, "a")
		first.TTL, first.Grace = 10*time.Second, engine.NoGrace
		began := time.Now()
		r.expect(engine.Granted, first)
		next := newInbox()
		r.submit(queue(next, "a"))
		<-next.c
		if a := <-next.c; a.Outcome != engine.Granted || time.Since(began) != 10*time.Second {
			t.Fatalf("%v after %v, want granted after 10s", a.Outcome, time.Since(began))
		}
	})
}

// Many leases that end at one moment end in bounded steps, and commands go
// between them.
func TestMassExpiry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clock := newFakeClock(at(0))
		r := newRig(t, withClock(clock))
		const n = 30_000
		cmds := make([]engine.Command, n)
		in := newInbox()
		for i := range cmds {
			cmds[i] = acquire(in, keyNumber(i))
		}
		r.submit(cmds...)
		for range n {
			<-in.c
		}
		clock.advance(time.Hour)
		synctest.Wait()
		clock.advance(time.Hour)
		synctest.Wait()
		if _, err := r.shard.Read(r.Context(), "test", func(e *engine.Engine, _ engine.Time) {
			if c := e.Counts(); c.Leases != 0 {
				t.Errorf("%d leases are left", c.Leases)
			}
		}); err != nil {
			t.Error(err)
		}
	})
}

// A heartbeat that waited in the mailbox counts from its arrival, and is read
// before the tick that would have ended its session.
func TestQueuedHeartbeatBeatsExpiry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clock := newFakeClock(at(0))
		r := newRig(t, withClock(clock))
		alive, silent := r.openSession(10*time.Second), r.openSession(10*time.Second)
		kept := r.expect(engine.Granted, in(alive, acquire(nil, "kept"))).Lease
		r.expect(engine.Granted, in(silent, acquire(nil, "lost")))

		let, stuck := make(chan struct{}), make(chan struct{})
		go r.shard.Read(r.Context(), "test", func(*engine.Engine, engine.Time) { close(stuck); <-let })
		<-stuck
		clock.advance(9 * time.Second)
		beat := &engine.Heartbeat{Head: alive}
		beats := newInbox()
		beat.From = beats
		r.submit(beat)
		clock.advance(9 * time.Second) // both deadlines have passed before anything is read
		close(let)
		if a := <-beats.c; a.Outcome != engine.Done {
			t.Fatalf("heartbeat: %v %s", a.Outcome, a.Code)
		}
		lease := r.expect(engine.Granted, &engine.GetLease{Head: alive, Lease: kept.ID}).Lease
		if lease.State == interlock.Grace || lease.ExpiresIn != time.Second {
			t.Errorf(
				"the lease is in %v with %v left, want 1s: ttl 10s from the heartbeat's arrival", lease.State, lease.ExpiresIn,
			)
		}
		r.refused(interlock.CodeSessionEnded, &engine.Heartbeat{Head: silent})
	})
}

// A pause of the process is left out of the time: no holder loses a lease by it.
func TestPause(t *testing.T) {
	var mono time.Duration
	var gaps gapClock
	for _, c := range []struct {
		after, want time.Duration
	}{
		{250 * time.Millisecond, 250 * time.Millisecond},
		{250 * time.Millisecond, 500 * time.Millisecond},
		{time.Second, 1500 * time.Millisecond},            // not above the threshold
		{20 * time.Second, 1500 * time.Millisecond},       // stopped
		{250 * time.Millisecond, 1750 * time.Millisecond}, // and on
		{0, 1750 * time.Millisecond},
		{-time.Millisecond, 1750 * time.Millisecond}, // a look that overtook another
		{251 * time.Millisecond, 2 * time.Second},
		{time.Second + 1, 2 * time.Second},
	} {
		mono += c.after
		if got := gaps.look(mono); got != c.want {
			t.Errorf("at %v the clock says %v, want %v", mono, got, c.want)
		}
	}
}

// An idle shard's clock does not take its idleness for a pause.
func TestIdleIsNoPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newWallClock()
		defer c.stop()
		before := c.Now()
		<-time.After(time.Hour)
		if d := c.Now().Sub(before); d != time.Hour {
			t.Errorf("an hour was %v", d)
		}
	})
}

// The shard's time continues above the journal's, also when the wall clock was set back between
// two starts.
func TestTimeNeverGoesBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, withClock(newFakeClock(at(time.Hour))))
		held := r.expect(engine.Granted, acquire(nil, "a")).Lease
		last := r.now()
		r.close()

		clock := newFakeClock(at(0))
		r.open(withClock(clock))
		if now := r.now(); now < last {
			t.Errorf("the time went from %d to %d", last, now)
		}
		clock.advance(29 * time.Second)
		r.expect(engine.Granted, &engine.GetLease{Head: head(nil), Lease: held.ID}) // a full new ttl
		clock.advance(30 * time.Second)                                             // its hard end
		synctest.Wait()
		clock.advance(interlock.DefaultGrace)
		r.refused(interlock.CodeExpired, &engine.GetLease{Head: head(nil), Lease: held.ID})
	})
}

func (r *rig) now() (now engine.Time) {
	r.Helper()
	if _, err := r.shard.Read(r.Context(), "test", func(_ *engine.Engine, t engine.Time) { now = t }); err != nil {
		r.Fatal(err)
	}
	return now
}

// A read sees its own time, also when nothing has happened for long.
func TestReadSeesNow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clock := newFakeClock(at(0))
		r := newRig(t, withClock(clock))
		clock.advance(time.Hour)
		if now := r.now(); now != at(time.Hour) {
			t.Errorf("a read an hour later sees %v", now.Sub(at(0)))
		}
	})
}

// An idle shard with a held lease that is renewed writes nothing.
func TestRenewalsWriteNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		h := r.openSession(10 * time.Second)
		r.expect(engine.Granted, in(h, acquire(nil, "a")))
		before := r.shard.At()
		for range 360 {
			<-time.After(5 * time.Second)
			beat := engine.Heartbeat{Head: h}
			r.expect(engine.Done, &beat)
		}
		if after := r.shard.At(); after != before {
			t.Errorf("half an hour of heartbeats wrote %d entries", after.Index-before.Index)
		}
	})
}

// Draining stops grants, not releases; the next owner grants what waits.
func TestDrain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		held := r.expect(engine.Granted, acquire(nil, "a")).Lease
		waiter := newInbox()
		r.submit(queue(waiter, "a"))
		ticket := (<-waiter.c).Ticket.ID
		if err := r.shard.Drain(r.Context()); err != nil {
			t.Fatal(err)
		}
		r.refused(interlock.CodeShuttingDown, acquire(nil, "b"))
		r.expect(engine.Done, release(nil, held.ID))
		r.expect(engine.Queued, &engine.Poll{Head: head(nil), Ticket: ticket})
		r.close()
		if err := r.shard.Submit(acquire(nil, "b")); !errors.Is(err, &interlock.Error{Code: interlock.CodeShuttingDown}) {
			t.Errorf("Submit: %v", err)
		}

		r.open()
		r.expect(engine.Granted, &engine.Poll{Head: head(nil), Ticket: ticket})
	})
}

// A clock that is far ahead when a shard opens must not become the journal's: every deadline
// would come due. A small lead is the time that the shard was closed.
func TestClockFarAhead(t *testing.T) {
	const most = 48 * time.Hour
	var clock *fakeClock
	now := engine.Time(1e18)
	with := func(c *Config) {
		clock = newFakeClock(now)
		c.Clock, c.MaxAhead = clock, most
	}
	r := newRig(t, with)
	r.expect(engine.Granted, acquire(nil, "a"))
	r.close()
	now = now.Add(5 * 365 * 24 * time.Hour)
	j, err := r.store.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tail := j.Tail()
	cfg := Config{Journal: j, SnapshotBytes: -1}
	with(&cfg)
	if _, err := Open(t.Context(), cfg); !errors.Is(err, ErrClock) {
		t.Fatalf("Open: %v", err)
	}
	if j.Tail() != tail {
		t.Error("the refused start has written to the journal")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	now = engine.Time(1e18).Add(most)
	r.open(with)
	r.refused(interlock.CodeHeld, acquire(nil, "a")) // its holder gets a full new ttl
}
