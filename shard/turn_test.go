package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/journal/memjournal"
)

// stall keeps the owner busy until the returned function is called.
func (r *rig) stall() (let func()) {
	r.Helper()
	stuck, free := make(chan struct{}), make(chan struct{})
	go r.shard.Read(r.Context(), "", func(*engine.Engine, engine.Time) { close(stuck); <-free })
	<-stuck
	return func() { close(free) }
}

// visitIn submits something that the owner runs as a command of a namespace.
func (r *rig) visitIn(namespace interlock.Namespace, run func()) (done <-chan error) {
	r.Helper()
	finished := make(chan error, 1)
	query := Query(
		namespace, func(*engine.Engine, engine.Time) bool { run(); return true },
		func(_ interlock.At, err error) { finished <- err },
	)
	if err := r.shard.Submit(query); err != nil {
		r.Error("submit:", err)
	}
	return finished
}

// Hundreds of goroutines of one tenant submit as fast as they can. Whatever moment
// another tenant's command comes at, no more than the rest of a turn is carried out
// before it: with one noisy tenant that is turnCommands, with k of them k turns.
func TestNoisyTenants(t *testing.T) {
	for _, noisy := range []int{1, 5} {
		t.Run(fmt.Sprint(noisy), func(t *testing.T) { bubble(t, func(t *testing.T) { noisyTenants(t, noisy) }) })
	}
}

func noisyTenants(t *testing.T, noisy int) {
	r := newRig(t)
	const callers, window, calls = 300, 10, 200
	var carriedOut atomic.Int64 // commands of the noisy, by the owner
	var stop atomic.Bool
	var worst int64
	var quiet []<-chan error

	// The quiet tenant submits from within the owner, between two commands of the
	// noisy ones: so what is carried out before and after is known exactly.
	count := func() {
		if n := carriedOut.Add(1); n%777 != 0 || len(quiet) == calls {
			return
		}
		before := carriedOut.Load()
		quiet = append(quiet, r.visitIn("quiet", func() { worst = max(worst, carriedOut.Load()-before) }))
		if len(quiet) == calls {
			stop.Store(true)
		}
	}
	var wg sync.WaitGroup
	for c := range callers {
		namespace := interlock.Namespace(fmt.Sprint("noisy-", c%noisy))
		wg.Go(func() {
			for !stop.Load() {
				var last <-chan error
				for range window {
					last = r.visitIn(namespace, count)
				}
				if err := <-last; err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, done := range quiet {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if bound := int64(noisy * turnCommands); worst > bound || worst == 0 {
		t.Errorf(
			"%d commands of %d noisy tenants were carried out before one of the quiet one, want 1 to %d", worst, noisy, bound,
		)
	}
}

// The same for a backlog of thousands, through Submit.
func TestBacklogOfAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		let := r.stall()
		all := newInbox()
		cmds := make([]engine.Command, 20_000)
		for i := range cmds {
			c := acquire(all, keyNumber(i))
			c.Namespace = "noisy"
			cmds[i] = c
		}
		r.submit(cmds...)
		r.submit(acquire(all, "a"), acquire(all, "b"))
		let()
		synctest.Wait()
		before := slices.IndexFunc(all.all(), func(a answer) bool { return a.Lease.Claims[0].Key == "a" })
		if before < 0 || before > turnCommands {
			t.Errorf("%d commands of another tenant were carried out first, want %d at most", before, turnCommands)
		}
		if got := len(all.all()); got != len(cmds)+2 {
			t.Errorf("%d answers, want %d", got, len(cmds)+2)
		}
	})
}

// The cost of a command counts, not only their number: a tenant with queries that take long has
// fewer turns.
func TestExpensiveCommandsCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		const cost = 50 * turnTime
		let := r.stall()
		var order []interlock.Namespace // of the commands that the owner carried out
		var last <-chan error
		for range 5 {
			last = r.visitIn("dear", func() {
				<-time.After(cost)
				order = append(order, "dear")
			})
		}
		for range 20_000 {
			r.visitIn("cheap", func() { order = append(order, "cheap") })
		}
		let()
		<-last
		synctest.Wait()
		if len(order) != 20_005 {
			t.Fatalf("%d commands were carried out", len(order))
		}
		// Between two queries the other tenant gets what they cost.
		first := slices.Index(order, "dear")
		second := slices.Index(order[first+1:], "dear")
		if want := int(cost / turnTime * turnCommands); second < want-turnCommands || second > want+turnCommands {
			t.Errorf("%d commands between two queries that cost as much as %d", second, want)
		}
	})
}

// The clock is looked at after each commit, however many wait: one may take as long as
// thousands of other commands.
func TestCommitsAreTimed(t *testing.T) {
	o := &owner{eng: engine.New(), cur: new(group)}
	o.cur.begin(1, 1)
	o.cur.step(o.eng, &engine.Recover{Epoch: 1})
	commit, other := &engine.Commit{Head: head(nil)}, &engine.GetLease{Head: head(nil)}
	q := &backlog{namespace: "test", out: []engine.Command{other, other, commit, commit, other, commit, other, other}}
	var stretches []int
	for q.taken() > 0 {
		steps, _, _ := o.advance(q, true)
		stretches = append(stretches, steps)
	}
	if want := []int{3, 1, 2, 2}; !slices.Equal(stretches, want) {
		t.Errorf("the clock was looked at after %v commands, want %v", stretches, want)
	}
}

// standInLine has n flows of one session wait for one key, each holding another. The returned
// function adds a request of a flow: one of the last flow can close a circle.
func (r *rig) standInLine(n int) (in func(flow, key string)) {
	r.Helper()
	h, inbox := r.openSession(time.Hour), newInbox()
	in = func(flow, key string) {
		c := acquire(inbox, key)
		c.Session, c.Flow, c.OnConflict = h.Session, flow, interlock.Wait
		r.submit(c)
	}
	for i := range n {
		in(fmt.Sprint(i), keyNumber(i))
		in(fmt.Sprint(i), "hot")
	}
	return in
}

// A tick is a turn of its own, after which others have theirs, and what was stepped before it goes
// to the committer first. One without a result is not in the group.
func TestTicksYield(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clock := newFakeClock(at(0))
		r := newRig(t, withClock(clock))
		const n = 600
		in := r.standInLine(n)
		synctest.Wait()
		let := r.stall()
		in("last", "last")
		in(fmt.Sprint(n-1), "last")
		in("last", "hot")
		others := newInbox()
		c := acquire(others, "a")
		c.Namespace = "other"
		r.submit(c)
		var searching atomic.Bool
		r.visitIn("other", func() {
			at, ok := r.shard.owner.eng.Due("test")
			searching.Store(ok && at <= clock.Now())
		})
		let()
		synctest.Wait()
		if !searching.Load() {
			t.Error("the search was over before another tenant had its turn")
		}
		if got := others.all(); len(got) != 1 || got[0].Outcome != engine.Granted {
			t.Errorf("the other tenant: %+v", got)
		}
	})
}

// While something is appended there are no ticks, but for one at each command that comes: the
// owner leaves its processor to the thread that waits for the disk. Afterwards they go on.
func TestTicksWaitForAppends(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clock := newFakeClock(at(0))
		r := newRig(t, withClock(clock))
		const n = 3000
		in := r.standInLine(n)
		searching := func() bool { // when the owner stands still
			synctest.Wait()
			at, ok := r.shard.owner.eng.Due("test")
			return ok && at <= clock.Now()
		}
		in("last", "last")
		in(fmt.Sprint(n-1), "last")
		if searching() {
			t.Fatal("a search has no end")
		}
		hold := r.store.Hold()
		others := newInbox()
		c := acquire(others, "a")
		c.Namespace = "other"
		r.submit(c)
		<-hold.Reached
		in("last", "hot") // closes a circle
		if !searching() {
			t.Error("the search was carried out during an append")
		}
		c = acquire(others, "b")
		c.Namespace = "other"
		r.submit(c)
		if !searching() {
			t.Error("the search was carried out during an append, after another command")
		}
		hold.Release()
		if searching() {
			t.Error("the search did not go on after the append")
		}
		if got := others.all(); len(got) != 2 || got[1].Outcome != engine.Granted {
			t.Errorf("the other tenant: %+v", got)
		}
	})
}

// A tenant that has the shard to itself does not pay for its earlier usage.
func TestAloneNobodyPays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		<-r.visitIn("dear", func() { <-time.After(1000 * turnTime) })
		let := r.stall()
		var order []interlock.Namespace
		r.visitIn("dear", func() { order = append(order, "dear") })
		r.visitIn("cheap", func() { order = append(order, "cheap") })
		let()
		synctest.Wait()
		if !slices.Equal(order, []interlock.Namespace{"dear", "cheap"}) {
			t.Errorf("carried out in the order %v", order)
		}
	})
}

// The commands of one namespace keep their order, no matter which others have turns between.
func TestOrderWithinNamespace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		let := r.stall()
		const namespaces, n = 3, 1000
		got := map[interlock.Namespace][]int{}
		for i := range n {
			for ns := range namespaces {
				namespace := interlock.Namespace(fmt.Sprint("ns-", ns))
				r.visitIn(namespace, func() { got[namespace] = append(got[namespace], i) })
			}
		}
		let()
		synctest.Wait()
		for namespace, list := range got {
			if len(list) != n || !slices.IsSorted(list) {
				t.Errorf("%s: %d commands, in order: %v", namespace, len(list), slices.IsSorted(list))
			}
		}
	})
}

// A tenant is refused before all are: each may have as much waiting as room is left.
func TestOverloaded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.MaxWaiting = 24 })
		let := r.stall()
		overloaded := &interlock.Error{Code: interlock.CodeOverloaded}
		answers := newInbox()
		fill := func(namespace interlock.Namespace) (taken int) {
			for {
				c := acquire(answers, keyNumber(taken))
				c.Namespace = namespace
				switch err := r.shard.Submit(c); {
				case err == nil:
					taken++
				case errors.Is(err, overloaded):
					return taken
				default:
					t.Fatal(err)
				}
			}
		}
		if n := fill("a"); n != 12 {
			t.Errorf("the first tenant has %d commands waiting, want half of 24", n)
		}
		if n := fill("b"); n != 6 {
			t.Errorf("the second has %d, want half of what is left", n)
		}
		if err := r.shard.Submit(
			acquire(answers, "x"), acquire(answers, "y"), acquire(answers, "z"), acquire(answers, "w"),
		); !errors.Is(err, overloaded) {
			t.Errorf("four into room for three: %v", err)
		}
		if n := fill("test"); n != 3 {
			t.Errorf("the third has %d, want 3", n)
		}
		let()
		synctest.Wait()
		if got := len(answers.all()); got != 12+6+3 {
			t.Errorf("%d answers, want those of the 21 that were taken", got)
		}
		if n := fill("a"); n == 0 {
			t.Error("nothing is taken after all was carried out")
		}
	})
}

// A heartbeat that came in time is in time, although another tenant's commands,
// which came after its deadline, are carried out first.
func TestHeartbeatWaitsForItsTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clock := newFakeClock(at(0))
		r := newRig(t, withClock(clock))
		h := r.openSession(10 * time.Second)
		r.expect(engine.Granted, in(h, acquire(nil, "kept")))
		let := r.stall()
		clock.advance(9 * time.Second)
		cmds := make([]engine.Command, 10*turnCommands)
		for i := range cmds {
			cmds[i] = &engine.GetLease{Head: head(nil)}
		}
		beats := newInbox()
		beat := &engine.Heartbeat{Head: h}
		beat.From = beats
		r.submit(append(cmds, beat)...)
		clock.advance(time.Minute)
		others := newInbox()
		late := acquire(others, "a")
		late.Namespace = "other"
		r.submit(late)
		let()
		if a := <-others.c; a.Outcome != engine.Granted {
			t.Errorf("the other tenant: %v %s", a.Outcome, prose.Sentence(a.Message))
		}
		if a := <-beats.c; a.Outcome != engine.Done || len(a.Losses) > 0 {
			t.Errorf("the heartbeat: %v %s, %d losses", a.Outcome, prose.Sentence(a.Message), len(a.Losses))
		}
		synctest.Wait()
		r.refused(interlock.CodeSessionEnded, &engine.Heartbeat{Head: h}) // a minute later
	})
}

// Due work in a namespace that has no command of its own is done although another one never
// stops.
func TestDueBesideNoise(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clock := newFakeClock(at(0))
		r := newRig(t, withClock(clock))
		first := acquire(nil, "a")
		first.TTL, first.Grace = 10*time.Second, engine.NoGrace
		r.expect(engine.Granted, first)
		next := newInbox()
		r.submit(queue(next, "a"))
		<-next.c
		let := r.stall()
		clock.advance(time.Minute)
		const noise = 10_000
		var order []interlock.Namespace
		for range noise {
			r.visitIn("noisy", func() {
				if order = append(order, "noisy"); len(order) == noise/2 && len(next.all()) < 2 {
					t.Error("nothing was ended while the noisy tenant was at work")
				}
			})
		}
		let()
		if a := <-next.c; a.Outcome != engine.Granted {
			t.Errorf("%v, want granted", a.Outcome)
		}
		synctest.Wait()
		if len(order) != noise {
			t.Errorf("%d of %d", len(order), noise)
		}
	})
}

func TestOneNamespaceInOneSubmit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		defer func() {
			if recover() == nil {
				t.Error("commands of two namespaces in one Submit went through")
			}
		}()
		other := acquire(nil, "a")
		other.Namespace = "other"
		_ = r.shard.Submit(acquire(nil, "a"), other)
	})
}

// A survey looks piece by piece: other namespaces have their turns between, and its
// own has none, so it sees one state.
func TestSurvey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		let := r.stall()
		const pieces = 1000
		var between []interlock.Namespace
		looks, finished := 0, make(chan error, 1)
		go func() {
			_, err := r.shard.Survey(r.Context(), "test", func(*engine.Engine, engine.Time) bool {
				looks++
				return looks == pieces
			})
			finished <- err
		}()
		synctest.Wait()
		for range 2 * pieces {
			r.visitIn("other", func() {
				if looks > 0 && looks < pieces {
					between = append(between, "other")
				}
			})
			r.visitIn("test", func() {
				if looks != pieces {
					t.Error("a command of its own namespace came between")
				}
			})
		}
		let()
		if err := <-finished; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if looks != pieces {
			t.Errorf("%d looks, want %d", looks, pieces)
		}
		if len(between) < pieces/2 {
			t.Errorf("%d commands of the other namespace came between %d looks", len(between), pieces)
		}
	})
}

// A survey is refused when its engine is thrown away: what it has seen was never written. It ends
// when its caller has gone.
func TestSurveyThatCannotEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(r.Context())
		// Each survey reports for itself that it has begun.
		endless := func() (look func(*engine.Engine, engine.Time) bool, began chan struct{}) {
			began = make(chan struct{}, 1)
			return func(*engine.Engine, engine.Time) bool {
				select {
				case began <- struct{}{}:
				default:
				}
				return false
			}, began
		}
		look, began := endless()
		go func() { <-began; cancel(gone) }()
		if _, err := r.shard.Survey(ctx, "test", look); !errors.Is(err, context.Canceled) {
			t.Errorf("a survey whose caller has gone: %v", err)
		}

		refused := make(chan error, 1)
		again, begun := endless()
		go func() {
			_, err := r.shard.Survey(r.Context(), "test", again)
			refused <- err
		}()
		<-begun
		r.store.Inject(memjournal.NoSpace)
		other := acquire(newInbox(), "a")
		other.Namespace = "other"
		r.submit(other)
		if err := <-refused; !errors.Is(err, &interlock.Error{Code: interlock.CodeNoSpace}) {
			t.Errorf("a survey over a rebuild: %v", err)
		}
		<-time.After(2 * fullFor)
		r.expect(engine.Granted, acquire(nil, "a"))
	})
}
