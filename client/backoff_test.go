package client_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/proto"
)

// longest makes every pause as long as it may be, so that its bound is seen.
func longest(n int64) int64 { return n - 1 }

func TestBackoff(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	for name, tt := range map[string]struct {
		pace      client.Backoff
		estimates []time.Duration
		want      []time.Duration
	}{
		"nothing is known: it doubles up to its bound": {
			client.Backoff{},
			make([]time.Duration, 10),
			[]time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 10 * s, 10 * s, 10 * s},
		},
		"the line moves as estimated: it stays with the estimate": {
			client.Backoff{},
			[]time.Duration{4 * s, 3 * s, 2 * s, 1 * s, 10 * ms},
			[]time.Duration{8 * s, 6 * s, 4 * s, 2 * s, 100 * ms},
		},
		"the estimate does not get shorter: it doubles around it": {
			client.Backoff{},
			[]time.Duration{s, s, s, s, s},
			[]time.Duration{2 * s, 4 * s, 8 * s, 10 * s, 10 * s},
		},
		"it moves again": {
			client.Backoff{},
			[]time.Duration{s, s, s, 900 * ms, 800 * ms},
			[]time.Duration{2 * s, 4 * s, 8 * s, 1800 * ms, 1600 * ms},
		},
		"bounds of one's own": {
			client.Backoff{Least: s, Most: 3 * s},
			[]time.Duration{0, 0, time.Hour, 0},
			[]time.Duration{2 * s, 3 * s, 3 * s, 3 * s},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.pace.Random = longest
			for i, estimate := range tt.estimates {
				if got := tt.pace.Next(estimate); got != tt.want[i] {
					t.Errorf("pause %d after the estimate %v: %v, wanted %v", i+1, estimate, got, tt.want[i])
				}
			}
		})
	}
}

func TestBackoffIsJittered(t *testing.T) {
	var pace client.Backoff
	seen := map[time.Duration]bool{}
	var sum time.Duration
	const rounds = 1000
	for range rounds {
		p := pace.Next(time.Second)
		if p <= 0 || p > 10*time.Second {
			t.Fatalf("a pause of %v", p)
		}
		seen[p] = true
		sum += p
	}
	if len(seen) < rounds-5 {
		t.Errorf("only %d different pauses of %d", len(seen), rounds)
	}
	if mean := sum / rounds; mean < 4*time.Second || mean > 6*time.Second {
		t.Errorf("the mean of pauses up to 10 s is %v", mean)
	}
}

func TestBackoffEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errStopped)
	if err := new(client.Backoff).Wait(ctx, time.Hour); err != errStopped {
		t.Error(err)
	}
}

// counter counts what clients send, by the kind of operation.
type counter struct {
	dial client.Dialer
	mu   sync.Mutex
	sent map[proto.OpKind]int
}

func (c *counter) Dial(ctx context.Context, hello proto.Hello) (proto.ClientLink, error) {
	link, err := c.dial(ctx, hello)
	return &countedLink{ClientLink: link, c: c}, err
}

func (c *counter) of(kind proto.OpKind) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent[kind]
}

type countedLink struct {
	proto.ClientLink
	c *counter
}

func (l *countedLink) Send(f *proto.ClientFrame) error {
	l.c.mu.Lock()
	for i := range f.Ops {
		l.c.sent[f.Ops[i].Kind]++
	}
	l.c.mu.Unlock()
	return l.ClientLink.Send(f)
}

const (
	callers = 100
	hold    = time.Second
)

// A hundred clients want one key: each asks once, stands in line, and is pushed its grant in
// the moment in which the key is free. No client asks twice.
func TestHundredCallersAreServedByPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(t)
		count := &counter{dial: w.inside, sent: map[proto.OpKind]int{}}
		s := &stage{t: t, w: w, ctx: context.Background()}
		began := time.Now()
		var places []*place
		for range callers {
			p := s.wait(w.connect(count.Dial, client.Config{}), exclusively("k"))
			synctest.Wait() // it is the next in line, or holds the key
			places = append(places, p)
		}
		var last interlock.Fence
		for i, p := range places {
			lease := p.granted()
			if waited := time.Since(began); waited != time.Duration(i)*hold {
				t.Fatalf("caller %d was served after %v", i, waited)
			}
			if lease.Fence() <= last {
				t.Fatalf("caller %d has fence %d after %d", i, lease.Fence(), last)
			}
			last = lease.Fence()
			<-time.After(hold)
			s.release(lease, "")
			synctest.Wait()
		}
		if asked, polled := count.of(proto.OpAcquire), count.of(proto.OpPoll); asked != callers || polled != 0 {
			t.Errorf("%d requests and %d polls of %d callers", asked, polled, callers)
		}
	})
}

// A hundred callers that can only poll: each asks once, has its place in line, and asks after
// it at the pace of Backoff.
func TestHundredCallersThatPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(t)
		began := time.Now()
		var (
			all    sync.WaitGroup
			mu     sync.Mutex
			polls  []time.Duration // when, since the beginning
			most   int             // tries of one caller
			served []int
		)
		for i := range callers {
			ticket, lease := stand(t, w)
			all.Go(func() {
				var pace client.Backoff
				var pauses []time.Duration
				for lease == nil {
					before := time.Now()
					if err := pace.Wait(t.Context(), ticket.ETA); err != nil {
						t.Error(err)
						return
					}
					pauses = append(pauses, time.Since(before))
					mu.Lock()
					polls = append(polls, time.Since(began))
					mu.Unlock()
					ticket, lease = ask(t, w, ticket.ID)
				}
				mu.Lock()
				served = append(served, i)
				most = max(most, len(pauses))
				mu.Unlock()
				noFixedInterval(t, i, pauses)
				<-time.After(hold)
				give(t, w, lease.ID)
			})
		}
		all.Wait()
		if !slices.IsSorted(served) || len(served) != callers {
			t.Errorf("served in the order %v", served)
		}
		herd := busiest(polls, 100*time.Millisecond)
		t.Logf("%d polls of %d callers in %v: at most %d of one caller, at most %d in any tenth of a second",
			len(polls), callers, time.Since(began), most, herd)
		if most > 100 {
			t.Errorf("one caller polled %d times", most)
		}
		if herd > callers/4 {
			t.Errorf("%d polls came within a tenth of a second", herd)
		}
	})
}

// noFixedInterval fails if a caller made two pauses of one length.
func noFixedInterval(t *testing.T, caller int, pauses []time.Duration) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(pauses))
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			t.Errorf("caller %d paused twice for %v", caller, sorted[i])
		}
	}
}

// busiest is how many of the moments lie within any span of this length.
func busiest(moments []time.Duration, span time.Duration) (most int) {
	slices.SortFunc(moments, cmp.Compare)
	first := 0
	for i, m := range moments {
		for m-moments[first] >= span {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// stand asks for the key without a session, as a script over HTTP does.
func stand(t *testing.T, w *world) (interlock.Ticket, *interlock.Lease) {
	t.Helper()
	return tell(t, w, &engine.Acquire{
		Head: engine.Head{Namespace: "default"}, ID: freshID(), LeaseRequest: interlock.LeaseRequest{
			OnConflict: interlock.Wait, Terms: interlock.Terms{TTL: time.Minute},
			Claims: []interlock.Claim{{Key: "k", Mode: interlock.Exclusive}},
		},
	})
}

func ask(t *testing.T, w *world, id interlock.TicketID) (interlock.Ticket, *interlock.Lease) {
	t.Helper()
	return tell(t, w, &engine.Poll{Head: engine.Head{Namespace: "default"}, Ticket: id})
}

func give(t *testing.T, w *world, id interlock.LeaseID) {
	t.Helper()
	tell(t, w, &engine.Release{Head: engine.Head{Namespace: "default"}, Lease: id})
}

func tell(t *testing.T, w *world, cmd engine.Command) (interlock.Ticket, *interlock.Lease) {
	t.Helper()
	eff, _, err := w.shard.Do(context.Background(), cmd)
	if err != nil || eff.Outcome == engine.Refused {
		t.Errorf("%T: %v %+v", cmd, err, eff)
	}
	if eff.Outcome == engine.Granted {
		return interlock.Ticket{}, &eff.Lease
	}
	return eff.Ticket, nil
}
