package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/proto"
)

// The tests of this file repeat, with clients and a whole server, published incidents of other
// systems. Their clocks are virtual.

// crowd plays a scene with a virtual clock.
func crowd(t *testing.T, play func(s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		w := inMemory(t)
		play(&stage{t: t, w: w, ctx: t.Context(), patience: 24 * time.Hour, client: func(agent string) *client.Client {
			return w.dial(client.Config{Agent: agent})
		}})
	})
}

func (s *stage) pattern(p interlock.Pattern) {
	s.t.Helper()
	if err := s.client("operator").SetPattern(s.ctx, p); err != nil {
		s.t.Fatal(err)
	}
}

// A cap of two and ten callers at once: exactly two are admitted, and eight learn that it is
// full, when to come back and which holders are in.
func TestCapOfTwoAndTenCallers(t *testing.T) {
	crowd(t, func(s *stage) {
		s.pattern(interlock.Pattern{Name: "runs", Shape: "org:{org}/runs", Capacity: 2})
		const callers = 10
		type result struct {
			lease *client.Lease
			err   error
		}
		results := make(chan result, callers)
		start := make(chan struct{})
		for i := range callers {
			c := s.client(fmt.Sprint("agent-", i))
			go func() {
				<-start
				lease, err := c.Acquire(s.ctx, client.Request{Claims: permits("org:acme/runs", 1)})
				results <- result{lease, err}
			}()
		}
		close(start)
		var admitted, refused int
		for range callers {
			r := <-results
			if r.err == nil {
				admitted++
				continue
			}
			refusal, ok := errors.AsType[*interlock.Error](r.err)
			if !ok || refusal.Code != interlock.CodeAtCapacity || refusal.ConflictKind != interlock.CapacityUsed ||
				!refusal.Code.Retryable() ||
				refusal.Capacity == nil || refusal.Capacity.Permits != 2 || refusal.Capacity.Used != 2 ||
				len(refusal.Holders) != 2 || refusal.Advice.RetryAfter <= 0 {
				s.t.Errorf("refused so: %+v", r.err)
			}
			refused++
		}
		if admitted != 2 || refused != 8 {
			s.t.Errorf("%d admitted, %d refused", admitted, refused)
		}
	})
}

func permits(key interlock.Key, count uint32) []interlock.Claim {
	return []interlock.Claim{{Key: key, Mode: interlock.Permits, Count: count}}
}

// Sixty-four agents want one key, and none of them ever releases it: each is served
// nevertheless, when the session before it has ended.
func TestAgentsThatNeverRelease(t *testing.T) {
	const agents, ttl = 64, 6 * time.Second
	for name, die := range map[string]func(s *stage, b *breaker, c *client.Client){
		"their processes end": func(s *stage, _ *breaker, c *client.Client) { closeClient(s.t, c) },
		"their machines die":  func(_ *stage, b *breaker, _ *client.Client) { b.block(); b.cut() },
	} {
		t.Run(name, func(t *testing.T) {
			crowd(t, func(s *stage) {
				type agent struct {
					b *breaker
					c *client.Client
					p *place
				}
				var line []agent
				for i := range agents {
					b := &breaker{dial: s.w.inside}
					c, err := client.New(s.ctx, b.Dial, client.Config{Agent: fmt.Sprint("agent-", i), SessionTTL: ttl})
					if err != nil {
						s.t.Fatal(err)
					}
					line = append(line, agent{b, c, s.wait(c, exclusively("k"))})
					synctest.Wait()
				}
				var last interlock.Fence
				for i, a := range line {
					before := time.Now()
					lease := a.p.granted()
					if waited := time.Since(before); waited > ttl+interlock.DefaultGrace {
						s.t.Errorf("agent %d was served %v after the one before it had died", i, waited)
					}
					if lease.Fence() <= last {
						s.t.Errorf("agent %d has fence %d after %d", i, lease.Fence(), last)
					}
					last = lease.Fence()
					die(s, a.b, a.c)
				}
				for _, a := range line {
					ctx, cancel := context.WithCancel(s.ctx)
					cancel()
					_ = a.c.Close(ctx) // the dead ones cannot say goodbye
				}
			})
		})
	}
}

// A waiter of priority 0 under a stream of requests with a higher one, with each holder asking
// again as soon as it has released: it is overtaken for as long as their lead in priority makes
// them count earlier, and not once after that.
func TestLowPriorityUnderReacquirers(t *testing.T) {
	const lead, hold = 6, time.Second
	const bound = lead * interlock.PriorityBoost
	crowd(t, func(s *stage) {
		ctx, cancel := context.WithCancel(s.ctx)
		first := s.acquire(s.client("first"), exclusively("k"))
		low := s.wait(s.client("low"), exclusively("k"))
		low.queued()
		began := time.Now()
		var busy sync.WaitGroup
		for i := range 5 {
			c := s.client(fmt.Sprint("busy-", i))
			busy.Go(func() {
				for {
					req := exclusively("k")
					req.Priority = lead
					lease, err := c.Acquire(ctx, req)
					if err != nil {
						return
					}
					<-time.After(hold)
					s.release(lease, "")
				}
			})
		}
		synctest.Wait()
		s.release(first, "")
		lease := low.granted()
		waited := time.Since(began)
		s.t.Logf("served after %v", waited)
		// Those that arrived before the bound may still be ahead: one each.
		if waited <= bound/2 || waited > bound+5*hold {
			s.t.Errorf("served after %v: the bound is %v and a hold of each that came before", waited, bound)
		}
		s.release(lease, "")
		cancel()
		busy.Wait()
	})
}

// Two hundred readers a second, each holding for a second, and one writer: it is served when
// those are done that held when it came.
func TestReaderFloodAndOneWriter(t *testing.T) {
	const hold, every = time.Second, 5 * time.Millisecond
	crowd(t, func(s *stage) {
		ctx, cancel := context.WithCancel(s.ctx)
		c := s.client("readers")
		var readers sync.WaitGroup
		readers.Go(func() {
			for ctx.Err() == nil {
				readers.Go(func() {
					lease, err := c.Acquire(
						ctx, client.Request{Keys: []interlock.Key{"k"}, Mode: interlock.Shared, OnConflict: interlock.Wait},
					)
					if err != nil {
						return
					}
					<-time.After(hold)
					s.release(lease, "")
				})
				<-time.After(every)
			}
		})
		<-time.After(3 * hold) // the flood runs
		for range 5 {
			began := time.Now()
			lease := s.wait(s.client("writer"), exclusively("k")).granted()
			if waited := time.Since(began); waited > 2*hold {
				s.t.Errorf("the writer waited %v under readers that hold for %v", waited, hold)
			}
			<-time.After(hold)
			s.release(lease, "")
		}
		cancel()
		readers.Wait()
	})
}

// A thousand clients in line and one release: the server sends one message to one of them.
func TestOneReleaseWakesOne(t *testing.T) {
	const waiters = 1000
	crowd(t, func(s *stage) {
		heard := &listener{dial: s.w.inside}
		first := s.acquire(s.client("first"), exclusively("k"))
		ctx, cancel := context.WithCancel(s.ctx)
		granted := make(chan *client.Lease, waiters)
		var line sync.WaitGroup
		for range waiters / 10 {
			c := s.w.connect(heard.Dial, client.Config{})
			for range 10 {
				line.Go(func() {
					if lease, err := c.Acquire(ctx, exclusively("k")); err == nil {
						granted <- lease
					}
				})
			}
		}
		synctest.Wait()
		before := heard.count()
		s.release(first, "")
		synctest.Wait()
		if n := heard.count() - before; n != 1 || len(granted) != 1 {
			s.t.Errorf("%d were told something, %d were granted", n, len(granted))
		}
		cancel()
		line.Wait()
	})
}

// listener counts what clients receive, but for the answers to their heartbeats.
type listener struct {
	dial client.Dialer
	mu   sync.Mutex
	n    int
}

func (l *listener) Dial(ctx context.Context, hello proto.Hello) (proto.ClientLink, error) {
	link, err := l.dial(ctx, hello)
	return &heardLink{ClientLink: link, l: l}, err
}

func (l *listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

type heardLink struct {
	proto.ClientLink
	l *listener
}

func (h *heardLink) Recv(f *proto.ServerFrame) error {
	err := h.ClientLink.Recv(f)
	h.l.mu.Lock()
	for i := range f.Replies {
		if f.Replies[i].Session == nil {
			h.l.n++
		}
	}
	h.l.mu.Unlock()
	return err
}

// Eight agents race for the next of a thousand items: each item has one winner, and
// no agent goes away empty while there are items.
func TestEightAgentsRaceForItems(t *testing.T) {
	const agents, items = 8, 1000
	for name, req := range map[string]client.Request{
		"of a pool":    {Prefix: "item:"},
		"of a request": {Any: true, Keys: itemKeys(items)},
	} {
		t.Run(name, func(t *testing.T) {
			crowd(t, func(s *stage) {
				s.pattern(interlock.Pattern{
					Name: "items", Shape: "item:{n}", Members: []string{fmt.Sprintf("item:{0..%d}", items-1)},
				})
				var mu sync.Mutex
				winners := map[interlock.Key]string{}
				var race sync.WaitGroup
				for i := range agents {
					name := fmt.Sprint("agent-", i)
					c := s.client(name)
					race.Go(func() {
						for {
							lease, err := c.Acquire(s.ctx, req)
							if isCode(err, interlock.CodeHeld) {
								return // they are all taken
							}
							if err != nil {
								s.t.Error(err)
								return
							}
							mu.Lock()
							if other, taken := winners[lease.Key()]; taken {
								s.t.Errorf("%s was won by %s and %s", lease.Key(), other, name)
							}
							winners[lease.Key()] = name
							mu.Unlock()
						}
					})
				}
				race.Wait()
				if len(winners) != items {
					s.t.Errorf("%d items of %d have a winner", len(winners), items)
				}
			})
		})
	}
}

func itemKeys(n int) (keys []interlock.Key) {
	for i := range n {
		keys = append(keys, interlock.Key(fmt.Sprint("item:", i)))
	}
	return keys
}
