package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// BenchmarkTwoTenants measures, from outside, what a tenant with thousands of waiting agents
// costs another one: servers are processes of their own with journals in files, and each tenant
// has a connection. A cycle of the quiet tenant is an acquire and a release. Blocks of cycles
// alternate: alone, at a server that has no other tenant; beside the waits as they stand; and
// beside the busy tenant that adds a wait and cancels it, as fast as it is answered. Each such
// wait makes the server search: for a deadlock, or for the ranks of a chain.
//
// The row "cycles" is the control: there the busy tenant acquires and releases a key of its
// own, and causes no search. Package shard has the same rows without a network.
func BenchmarkTwoTenants(b *testing.B) {
	for _, row := range []struct {
		name  string
		setUp func(*tenant) // has very many wait
		again func(*tenant) // makes one more do so, and cancels it
	}{
		{"cycles", func(*tenant) {}, (*tenant).cycle},
		{"line=10000", func(c *tenant) { c.standInLine(10_000) }, (*tenant).closeCircle},
		{"chain=16000", func(c *tenant) { c.chain(16_000) }, (*tenant).raise},
		{"permits=1800", func(c *tenant) { c.holdPermits(1800) }, (*tenant).wantPermits},
	} {
		b.Run(row.name, func(b *testing.B) {
			empty, s := launchtest.Start(
				b, launch.Config{DataDir: b.TempDir()},
			), launchtest.Start(b, launch.Config{DataDir: b.TempDir()})
			single, quiet, busy := newTenant(b, empty.GRPC, "quiet"), newTenant(b, s.GRPC, "quiet"), newTenant(b, s.GRPC, "busy")
			row.setUp(busy)
			const block = 200
			var alone, standing, beside []time.Duration
			for b.Loop() { // one block of each kind
				alone = append(alone, single.cycles(block)...)
				busy.rest()
				standing = append(standing, quiet.cycles(block)...)
				ctx, stop := context.WithCancel(b.Context())
				var done sync.WaitGroup
				done.Go(func() {
					for ctx.Err() == nil {
						row.again(busy)
					}
				})
				beside = append(beside, quiet.cycles(block)...)
				stop()
				done.Wait()
			}
			b.ReportMetric(0, "ns/op")
			for _, p := range []int{50, 99} {
				a := rank(alone, p)
				b.ReportMetric(float64(a.Microseconds()), fmt.Sprintf("p%d-alone-us", p))
				for name, took := range map[string][]time.Duration{"standing": standing, "beside": beside} {
					b.ReportMetric(float64(rank(took, p).Microseconds()), fmt.Sprintf("p%d-%s-us", p, name))
					b.ReportMetric(float64(rank(took, p))/float64(a), fmt.Sprintf("p%d-%s-ratio", p, name))
				}
			}
			for _, c := range []*tenant{busy, quiet, single} {
				c.close()
			}
		})
	}
}

func rank(took []time.Duration, p int) time.Duration {
	slices.Sort(took)
	return took[len(took)*p/100]
}

// tenant is one: the flows of one client.
type tenant struct {
	b    *testing.B
	c    *client.Client
	ctx  context.Context
	end  context.CancelFunc
	next int

	waits sync.WaitGroup
}

func newTenant(b *testing.B, addr string, namespace interlock.Namespace) *tenant {
	c := &tenant{b: b}
	c.ctx, c.end = context.WithCancel(b.Context())
	var err error
	if c.c, err = client.Dial(
		b.Context(),
		client.Config{Addrs: []string{addr}, Namespace: namespace, Agent: string(namespace), SessionTTL: interlock.MaxTTL},
	); err != nil {
		b.Fatal(err)
	}
	return c
}

// close releases all the tenant has.
func (c *tenant) close() {
	c.end()
	c.waits.Wait()
	if err := c.c.Close(context.Background()); err != nil {
		c.b.Error(err)
	}
}

func (c *tenant) hold(flow string, claim interlock.Claim) *client.Lease {
	l, err := c.c.Acquire(c.ctx, client.Request{Flow: flow, Claims: []interlock.Claim{claim}})
	if err != nil {
		c.b.Fatal(err)
	}
	return l
}

// wait makes a flow wait until leave is called, or as long as the tenant is there.
func (c *tenant) wait(flow string, claim interlock.Claim, priority int) (leave func()) {
	ctx, cancel := context.WithCancel(c.ctx)
	queued, ended := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c.waits.Go(func() {
		defer close(ended)
		l, err := c.c.Acquire(ctx, client.Request{
			Flow: flow, Claims: []interlock.Claim{claim}, Priority: priority, OnConflict: interlock.Wait,
			OnQueued: func(interlock.Ticket, []interlock.Holder) { once.Do(func() { close(queued) }) },
		})
		if err == nil {
			err = l.Release(context.Background(), client.Outcome{})
		}
		_ = err // it was given up, or refused as part of a deadlock
	})
	select {
	case <-queued:
	case <-ended:
	}
	return func() { cancel(); <-ended }
}

func keyOf(format string, args ...any) interlock.Claim {
	return interlock.Claim{Key: interlock.Key(fmt.Sprintf(format, args...)), Mode: interlock.Exclusive}
}

func permitsOf(n uint32) interlock.Claim {
	return interlock.Claim{Key: "p", Mode: interlock.Permits, Count: n}
}

// cycles returns how long each of n cycles takes.
func (c *tenant) cycles(n int) (took []time.Duration) {
	for range n {
		start := time.Now()
		c.cycle()
		took = append(took, time.Since(start))
	}
	return took
}

// rest returns when the server has searched for all deadlocks that there may be: it has found
// one that was made last.
func (c *tenant) rest() {
	one, other := c.hold("one", keyOf("one")), c.hold("other", keyOf("other"))
	ctx, cancel := context.WithCancel(c.ctx)
	ended := make(chan error, 2)
	for flow, key := range map[string]string{"one": "other", "other": "one"} {
		go func() {
			_, err := c.c.Acquire(
				ctx, client.Request{Flow: flow, Claims: []interlock.Claim{keyOf("%s", key)}, OnConflict: interlock.Wait},
			)
			ended <- err
		}()
	}
	var refused *interlock.Error
	if err := <-ended; !errors.As(err, &refused) || refused.Code != interlock.CodeDeadlock {
		c.b.Fatalf("of two that wait for each other one got %v", err)
	}
	cancel()
	<-ended
	for _, l := range []*client.Lease{one, other} {
		if err := l.Release(context.Background(), client.Outcome{}); err != nil {
			c.b.Fatal(err)
		}
	}
}

func (c *tenant) cycle() {
	if err := c.hold("", keyOf("own")).Release(context.Background(), client.Outcome{}); err != nil {
		c.b.Fatal(err)
	}
}

// holdPermits has very many flows hold one permit of a key, and wait for two more.
func (c *tenant) holdPermits(flows int) {
	if err := c.c.SetPattern(c.ctx, interlock.Pattern{Name: "p", Shape: "p", Capacity: uint32(flows) + 10}); err != nil {
		c.b.Fatal(err)
	}
	c.hold("idle", permitsOf(9))
	for i := range flows {
		c.hold(fmt.Sprint(i), permitsOf(1))
	}
	for i := range flows - 1 {
		c.wait(fmt.Sprint(i), permitsOf(2), 0)
	}
}

func (c *tenant) wantPermits() { c.wait("9", permitsOf(3), 0)() }

// standInLine has very many flows wait for one key, each holding another.
func (c *tenant) standInLine(flows int) {
	c.hold("idle", keyOf("hot"))
	for i := range flows - 1 {
		c.hold(fmt.Sprint(i), keyOf("own-%d", i))
		c.wait(fmt.Sprint(i), keyOf("hot"), 0)
	}
}

// closeCircle makes a flow that holds a key with a waiter join the end of the line.
func (c *tenant) closeCircle() {
	own := c.hold("last", keyOf("last"))
	other := c.wait("other", keyOf("last"), 0)
	c.wait("last", keyOf("hot"), 0)()
	other()
	if err := own.Release(context.Background(), client.Outcome{}); err != nil {
		c.b.Fatal(err)
	}
}

// chain has very many flows each hold a key and wait for that of the next.
func (c *tenant) chain(flows int) {
	for i := range flows {
		c.hold(fmt.Sprint(i), keyOf("k%d", i))
	}
	for i := range flows - 1 {
		c.wait(fmt.Sprint(i), keyOf("k%d", i+1), 0)
	}
}

// raise sends a priority to the head of the chain, and removes it again.
func (c *tenant) raise() {
	c.wait("head", keyOf("k0"), 1+c.next%9)()
	c.next++
}
