package client_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/test/busy"
)

// A scenario holds for every transport between client and server.
type scenario struct {
	name string
	run  func(t *testing.T, s *stage)
}

var basicScenarios = []scenario{
	{"a granted lease, and its release", func(t *testing.T, s *stage) {
		c := s.client("billing")
		lease := s.acquire(
			c,
			client.Request{
				Keys: []interlock.Key{"account:1"}, Purpose: "late fee",
				Terms: interlock.Terms{TTL: 20 * time.Second, Grace: client.NoGrace, MaxHold: time.Hour},
			},
		)
		info := lease.Info()
		if info.Agent != "billing" || info.Session != c.SessionName() || info.Purpose != "late fee" ||
			info.TTL != 20*time.Second ||
			info.Grace != 0 || info.State != interlock.Held || info.MaxHoldIn <= 59*time.Minute || info.Flow == "" || info.Fence != lease.Fence() {
			t.Errorf("lease %+v", info)
		}
		if got := lease.Claims(); len(got) != 1 || got[0] != (interlock.Claim{Key: "account:1", Mode: interlock.Exclusive}) {
			t.Errorf("claims %v", got)
		}
		if lease.Err() != nil || lease.Context().Err() != nil || lease.At().Index == 0 {
			t.Errorf("err %v, context %v, at %+v", lease.Err(), lease.Context().Err(), lease.At())
		}
		if err := c.CheckFence(s.ctx, "account:1", lease.Fence()); err != nil {
			t.Error(err)
		}
		s.release(lease, "")
		if err := c.CheckFence(s.ctx, "account:1", lease.Fence()); !isCode(err, interlock.CodeFenced) {
			t.Errorf("check after release: %v", err)
		}
		if !isCode(context.Cause(lease.Context()), interlock.CodeReleased) || !isCode(lease.Err(), interlock.CodeReleased) {
			t.Errorf("after release: %v, %v", context.Cause(lease.Context()), lease.Err())
		}
		if err := lease.Release(s.ctx, client.Outcome{}); err != nil {
			t.Errorf("second release: %v", err)
		}
		if again := s.acquire(c, exclusively("account:1")); again.Fence() <= lease.Fence() {
			t.Errorf("fence %d after %d", again.Fence(), lease.Fence())
		}
	}},
	{"fail tells who holds it", func(t *testing.T, s *stage) {
		s.acquire(s.client("a"), client.Request{Keys: []interlock.Key{"k"}, Purpose: "\x1b[31mred"})
		_, err := s.client("b").Acquire(s.ctx, client.Request{Keys: []interlock.Key{"k"}})
		refusal, ok := errors.AsType[*interlock.Error](err)
		if !ok || refusal.Code != interlock.CodeHeld || refusal.Key != "k" || refusal.ConflictKind != interlock.OtherAgent ||
			len(refusal.Holders) != 1 || refusal.Holders[0].Agent != "a" || refusal.Holders[0].Purpose != " [31mred" ||
			refusal.Line == nil || refusal.Advice.Message == "" || refusal.At.Index == 0 {
			t.Errorf("got %+v", refusal)
		}
	}},
	{"skip is no error of the server", func(t *testing.T, s *stage) {
		s.acquire(s.client("a"), exclusively("k"))
		_, err := s.client("b").Acquire(s.ctx, client.Request{Keys: []interlock.Key{"k"}, OnConflict: interlock.Skip})
		skipped, ok := errors.AsType[*client.SkippedError](err)
		if !errors.Is(err, client.ErrSkipped) || !ok || skipped.Key != "k" || len(skipped.Holders) != 1 {
			t.Errorf("got %v", err)
		}
	}},
	{"a wait is granted, with note and change", func(t *testing.T, s *stage) {
		first := s.acquire(s.client("a"), exclusively("k"))
		place := s.wait(s.client("b"), exclusively("k"))
		if ticket := place.queued(); ticket.Position != 1 || ticket.Length != 1 {
			t.Errorf("ticket %+v", ticket)
		}
		s.release(first, "halfway\ndone")
		lease := place.granted()
		if !lease.Changed() || len(lease.Notes()) != 1 || lease.Notes()[0].Text != "halfway\ndone" ||
			lease.Notes()[0].Agent != "a" {
			t.Errorf("changed %v, notes %+v", lease.Changed(), lease.Notes())
		}
	}},
	{"a wait that is given up leaves the line", func(t *testing.T, s *stage) {
		first := s.acquire(s.client("a"), exclusively("k"))
		b := s.client("b")
		ctx, cancel := context.WithCancelCause(s.ctx)
		s.ctx = ctx
		place := s.wait(b, exclusively("k"))
		place.queued()
		s.ctx = context.Background()
		other := s.wait(s.client("c"), exclusively("k"))
		if ticket := other.queued(); ticket.Position != 2 {
			t.Errorf("ticket %+v", ticket)
		}
		why := errors.New("the agent was stopped")
		cancel(why)
		if err := place.refused(); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		s.release(first, "")
		other.granted()
	}},
	{"what a flow holds is granted to it again", func(t *testing.T, s *stage) {
		a, b := s.client("a"), s.client("b")
		first := s.acquire(a, exclusively("k"))
		ctx := s.ctx
		s.ctx = first.Context() // carries the flow
		second := s.acquire(a, exclusively("k"))
		s.ctx = ctx
		if second.ID() != first.ID() || second.Flow() != first.Flow() {
			t.Errorf("leases %v and %v", first.Info(), second.Info())
		}
		s.release(first, "")
		if second.Err() != nil || second.Context().Err() != nil || first.Err() == nil {
			t.Errorf("after the first release: %v, %v", second.Err(), first.Err())
		}
		if _, err := b.Acquire(s.ctx, client.Request{Keys: []interlock.Key{"k"}}); !isCode(err, interlock.CodeHeld) {
			t.Errorf("got %v", err)
		}
		s.release(second, "")
		s.acquire(b, client.Request{Keys: []interlock.Key{"k"}})
	}},
	{"two flows of one client exclude each other", func(t *testing.T, s *stage) {
		c := s.client("a")
		s.acquire(c, exclusively("k"))
		_, err := c.Acquire(s.ctx, client.Request{Keys: []interlock.Key{"k"}})
		if refusal, ok := errors.AsType[*interlock.Error](err); !ok || refusal.ConflictKind != interlock.SameAgentOtherFlow {
			t.Errorf("got %v", err)
		}
	}},
	{"the victim of a deadlock is told the cycle", func(t *testing.T, s *stage) {
		a, b := s.client("a"), s.client("b")
		x := s.acquire(a, client.Request{Keys: []interlock.Key{"x"}, Flow: "one"})
		s.acquire(b, client.Request{Keys: []interlock.Key{"y"}, Flow: "two"})
		other := s.wait(b, client.Request{Keys: []interlock.Key{"x"}, Flow: "two", OnConflict: interlock.Wait, Priority: 1})
		other.queued()
		_, err := a.Acquire(s.ctx, client.Request{Keys: []interlock.Key{"y"}, Flow: "one", OnConflict: interlock.Wait})
		refusal, ok := errors.AsType[*interlock.Error](err)
		if !ok || refusal.Code != interlock.CodeDeadlock || len(refusal.Cycle) != 2 ||
			refusal.Cycle[0].Next != interlock.Holds || refusal.Advice.Message == "" {
			t.Fatalf("got %+v", err)
		}
		s.release(x, "")
		other.granted()
	}},
	{"bad requests are refused with their codes", func(t *testing.T, s *stage) {
		c := s.client("a")
		for want, req := range map[interlock.Code]client.Request{
			interlock.CodeInvalidKey:      {Keys: []interlock.Key{"a//b"}},
			interlock.CodeTooManyClaims:   {},
			interlock.CodeDuplicateClaim:  {Keys: []interlock.Key{"a", "a"}},
			interlock.CodeInvalidMode:     {Keys: []interlock.Key{"a"}, Mode: 99},
			interlock.CodeInvalidTTL:      {Keys: []interlock.Key{"a"}, Terms: interlock.Terms{TTL: time.Millisecond}},
			interlock.CodeInvalidPriority: {Keys: []interlock.Key{"a"}, Priority: 1 << 40},
			interlock.CodeTooLong: {
				Keys: []interlock.Key{"a"}, Purpose: string(make([]byte, interlock.MaxPurposeBytes+1)),
			},
			interlock.CodeInvalidRequest: {Keys: []interlock.Key{"a"}, Purpose: "\xff"},
			interlock.CodeBodyTooLarge:   {Keys: []interlock.Key{"a"}, Purpose: string(make([]byte, 2<<20))},
		} {
			if _, err := c.Acquire(s.ctx, req); !isCode(err, want) {
				t.Errorf("%s: got %v", want, err)
			}
		}
		many := make([]interlock.Key, interlock.MaxClaims+1)
		for i := range many {
			many[i] = interlock.Key(fmt.Sprint(i))
		}
		if _, err := c.Acquire(s.ctx, client.Request{Keys: many}); !isCode(err, interlock.CodeTooManyClaims) {
			t.Errorf("65 claims: %v", err)
		}
		lease := s.acquire(c, client.Request{Keys: many[1:]})
		s.release(lease, strings.Repeat("é", interlock.MaxNoteBytes)+"\xff") // any note will do
		again := s.acquire(s.client("b"), client.Request{Keys: many[1:]})
		if notes := again.Notes(); len(notes) == 0 || notes[0].Text != strings.Repeat("é", interlock.MaxNoteBytes/2) {
			t.Errorf("notes %v", notes)
		}
	}},
	{"a revoked lease is lost, and its release says so", func(t *testing.T, s *stage) {
		lease := s.acquire(s.client("a"), exclusively("k"))
		ctx := lease.Context()
		eff, _, err := s.w.shard.Do(
			s.ctx, &engine.Revoke{Head: engine.Head{Namespace: "default"}, Key: "k", Fence: lease.Fence(), Reason: "runaway"},
		)
		if err != nil || eff.Outcome != engine.Done {
			t.Fatal(eff, err)
		}
		<-ctx.Done()
		if !isCode(context.Cause(ctx), interlock.CodeRevoked) || !isCode(lease.Err(), interlock.CodeRevoked) {
			t.Errorf("cause %v, err %v", context.Cause(ctx), lease.Err())
		}
		if err := lease.Release(s.ctx, client.Outcome{}); !isCode(err, interlock.CodeRevoked) {
			t.Errorf("release: %v", err)
		}
	}},
	{"closing the client frees everything", func(t *testing.T, s *stage) {
		a, b := s.client("a"), s.client("b")
		held := s.acquire(a, exclusively("k"))
		place := s.wait(b, exclusively("k"))
		place.queued()
		own := s.wait(a, exclusively("k"))
		own.queued()
		if err := a.Close(s.ctx); err != nil {
			t.Error(err)
		}
		place.granted()
		if err := own.refused(); !errors.Is(err, client.ErrClosed) {
			t.Errorf("own wait: %v", err)
		}
		if held.Err() == nil {
			t.Error("a closed client's lease counts as held")
		}
		if _, err := a.Acquire(s.ctx, exclusively("z")); !errors.Is(err, client.ErrClosed) {
			t.Errorf("after close: %v", err)
		}
	}},
	{"one release and a thousand waiters: one grant", func(t *testing.T, s *stage) {
		first := s.acquire(s.client("a"), exclusively("k"))
		b := s.client("b")
		const waiters = 1000
		queued, granted := make(chan struct{}, waiters), make(chan *client.Lease, waiters)
		for range waiters {
			go func() {
				req := exclusively("k")
				req.OnQueued = func(interlock.Ticket, []interlock.Holder) { queued <- struct{}{} }
				if lease, err := b.Acquire(s.ctx, req); err == nil {
					granted <- lease
				}
			}()
		}
		for range waiters {
			await(t, queued, "a place in line")
		}
		s.release(first, "")
		last := first.Fence()
		for range waiters {
			lease := await(t, granted, "the next grant")
			// Any other grant would have come before the next answer.
			if err := b.CheckFence(s.ctx, "k", lease.Fence()); err != nil {
				t.Fatal(err)
			}
			if len(granted) > 0 {
				t.Fatal("two waiters were granted")
			}
			if lease.Fence() <= last {
				t.Fatalf("fence %d after %d", lease.Fence(), last)
			}
			last = lease.Fence()
			s.release(lease, "")
		}
	}},
}

func TestScenarios(t *testing.T) {
	for _, sc := range slices.Concat(
		basicScenarios, limitScenarios, changeScenarios, renewScenarios, parkScenarios, declareScenarios, memberScenarios,
		stateScenarios, effectScenarios,
	) {
		t.Run(sc.name, func(t *testing.T) {
			t.Run("embedded", func(t *testing.T) {
				w := inMemory(t)
				sc.run(t, &stage{t: t, w: w, ctx: context.Background(), client: func(agent string) *client.Client {
					return w.dial(client.Config{Agent: agent})
				}})
			})
			t.Run("remote", func(t *testing.T) {
				w := inMemory(t)
				addr := w.listen()
				sc.run(t, &stage{t: t, w: w, ctx: context.Background(), client: func(agent string) *client.Client {
					c, err := client.Dial(context.Background(), client.Config{Addrs: []string{addr}, Agent: agent})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { closeClient(t, c) })
					return c
				}})
			})
		})
	}
}

// stage is where a scenario plays.
type stage struct {
	t      *testing.T
	w      *world
	ctx    context.Context
	client func(agent string) *client.Client

	held []*client.Lease // what the collector would take for dropped
	mu   sync.Mutex      // guards it

	patience time.Duration // with a clock of its own: longer than anything takes; 0: busy.Patience
}

func (s *stage) bound() time.Duration { return cmp.Or(s.patience, busy.Patience()) }

func (s *stage) acquire(c *client.Client, req client.Request) *client.Lease {
	s.t.Helper()
	ctx, cancel := context.WithTimeoutCause(s.ctx, s.bound(), errInVain)
	defer cancel()
	lease, err := c.Acquire(ctx, req)
	if err != nil {
		s.t.Fatalf("acquire %v: %v", req.Keys, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.t.Cleanup(func() { s.held = nil })
	}
	s.held = append(s.held, lease)
	return lease
}

func (s *stage) release(lease *client.Lease, note string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeoutCause(s.ctx, s.bound(), errInVain)
	defer cancel()
	if err := lease.Release(ctx, client.Outcome{Outcome: "done", Note: note}); err != nil {
		s.t.Fatalf("release of %s: %v", lease.Key(), err)
	}
}

// place is a request that stands in line.
type place struct {
	t       *testing.T
	bound   time.Duration
	tickets chan interlock.Ticket
	leases  chan *client.Lease
	errs    chan error
}

func (s *stage) wait(c *client.Client, req client.Request) *place {
	return s.stand(func(ctx context.Context, queued func(interlock.Ticket, []interlock.Holder)) (*client.Lease, error) {
		req.OnQueued = queued
		return c.Acquire(ctx, req)
	})
}

// stand does what may stand in line.
func (s *stage) stand(
	do func(ctx context.Context, queued func(interlock.Ticket, []interlock.Holder)) (*client.Lease, error),
) *place {
	p := &place{
		t: s.t, bound: s.bound(), tickets: make(chan interlock.Ticket, 16), leases: make(chan *client.Lease, 1),
		errs: make(chan error, 1),
	}
	ctx := s.ctx
	go func() {
		lease, err := do(ctx, func(ticket interlock.Ticket, _ []interlock.Holder) { p.tickets <- ticket })
		if err != nil {
			p.errs <- err
			return
		}
		p.leases <- lease
	}()
	return p
}

func (p *place) queued() interlock.Ticket {
	p.t.Helper()
	select {
	case ticket := <-p.tickets:
		return ticket
	case err := <-p.errs:
		p.t.Fatal(err)
	case lease := <-p.leases:
		p.t.Fatalf("granted at once: %+v", lease.Info())
	case <-time.After(p.bound):
		p.t.Fatal("waited in vain for its place in line")
	}
	return interlock.Ticket{}
}

func (p *place) granted() *client.Lease {
	p.t.Helper()
	select {
	case lease := <-p.leases:
		return lease
	case err := <-p.errs:
		p.t.Fatal(err)
	case <-time.After(p.bound):
		p.t.Fatal("waited in vain for its grant")
	}
	return nil
}

func (p *place) refused() error {
	p.t.Helper()
	select {
	case err := <-p.errs:
		return err
	case lease := <-p.leases:
		p.t.Fatalf("granted: %+v", lease.Info())
	case <-time.After(p.bound):
		p.t.Fatal("waited in vain for its refusal")
	}
	return nil
}

func isCode(err error, code interlock.Code) bool {
	refusal, ok := errors.AsType[*interlock.Error](err)
	return ok && refusal.Code == code
}
