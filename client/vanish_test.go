package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// deed is an operation of a client with a lease.
type deed struct {
	name    string
	changes bool // what outlives the session: the outcome can be unknown
	do      func(ctx context.Context, c *client.Client, held *client.Lease) error
}

// deeds are operations of all kinds.
var deeds = []deed{
	{"acquire", true, func(ctx context.Context, c *client.Client, _ *client.Lease) error {
		_, err := c.Acquire(ctx, exclusively("other"))
		return err
	}},
	{"renew", true, func(ctx context.Context, _ *client.Client, held *client.Lease) error {
		return held.Renew(ctx, client.Renewal{})
	}},
	{"convert", true, func(ctx context.Context, _ *client.Client, held *client.Lease) error {
		return held.Convert(ctx, client.Conversion{Claims: []interlock.Claim{{Key: "k", Mode: interlock.Shared}}})
	}},
	{"release", true, func(ctx context.Context, _ *client.Client, held *client.Lease) error {
		return held.Release(ctx, client.Outcome{Note: "done"})
	}},
	{"commit", true, func(ctx context.Context, c *client.Client, _ *client.Lease) error {
		_, err := c.Commit(ctx, writing(client.Add("n", 1)))
		return err
	}},
	{"commit under a lease", true, func(ctx context.Context, _ *client.Client, held *client.Lease) error {
		_, err := held.Commit(ctx, writing(client.Put("k", []byte("1"))))
		return err
	}},
	{"claim of an effect", true, func(ctx context.Context, c *client.Client, _ *client.Lease) error {
		_, err := c.ClaimEffect(ctx, charge(300))
		return err
	}},
	{"task", true, func(ctx context.Context, c *client.Client, _ *client.Lease) error {
		_, err := c.Submit(ctx, client.TaskSpec{Queue: "q"})
		return err
	}},
	{"pattern", true, func(ctx context.Context, c *client.Client, _ *client.Lease) error {
		return c.SetPattern(ctx, interlock.Pattern{Name: "p", Shape: "p:{x}"})
	}},
	{"queue", true, func(ctx context.Context, c *client.Client, _ *client.Lease) error {
		return c.SetQueue(ctx, interlock.TaskQueue{Name: "r"})
	}},
	{"fence check", false, func(ctx context.Context, c *client.Client, held *client.Lease) error {
		return c.CheckFence(ctx, "k", held.Fence())
	}},
	{"document", false, func(ctx context.Context, c *client.Client, _ *client.Lease) error {
		_, err := c.Document(ctx, "k")
		return err
	}},
}

const firstAddr, secondAddr = "192.0.2.1:7421", "192.0.2.2:7421"

// some returns the operations that are tried with a fault: in short tests a third of them, not the same for each.
func some(name string) (list []deed) {
	for i, a := range deeds {
		if !testing.Short() || (i+len(name))%3 == 0 {
			list = append(list, a)
		}
	}
	return list
}

// pair is two servers in virtual time, the second of them a standby, and a client of both.
type pair struct {
	t    *testing.T
	w    *world
	n    *network
	c    *client.Client
	held *client.Lease

	leave func() // stops the standby
}

func newPair(t *testing.T, scheme string, retryFor time.Duration) *pair {
	p := &pair{t: t, w: inMemory(t), n: newNetwork(t, firstAddr, secondAddr)}
	p.w.leave = listenWith(p.w.door.Server(), p.n.listen(firstAddr))
	p.leave = listenWith(standByInside(t).door.Server(), p.n.listen(secondAddr))
	t.Cleanup(func() { p.leave() })
	c, err := client.DialThrough(t.Context(), p.n.dial, client.Config{
		Addrs: []string{scheme + firstAddr, scheme + secondAddr}, Agent: "a", RetryFor: retryFor,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.c = c
	if p.held, err = c.Acquire(t.Context(), exclusively("k")); err == nil {
		err = c.SetQueue(t.Context(), interlock.TaskQueue{Name: "q"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// takeOver ends the first server, and has the second go on.
func (p *pair) takeOver() {
	p.w.stop()
	p.leave()
	p.w.start()
	p.w.leave = listenWith(p.w.door.Server(), p.n.listen(secondAddr))
	p.leave = func() {}
}

// end ends all. What is left of the client is given up.
func (p *pair) end() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = p.c.Close(ctx)
	p.n.set(firstAddr, closing)
}

// An operation that is under way when its server is lost ends soon after another one has taken over: a server that does
// not answer is left within 2.5 s, and 6 s over gRPC, and from then on the one that answers is asked at least once a
// second. A slow server is not left.
func TestLostServer(t *testing.T) {
	const round = 2500 * time.Millisecond // an attempt at the lost one, and a pause
	overEach(t, func(t *testing.T, scheme string) {
		left := 2500 * time.Millisecond
		if scheme != "" {
			left = 6 * time.Second
		}
		for name, lost := range map[string]struct {
			fault fault
			after time.Duration // when the other server has taken over; 0 for never
			least time.Duration // until the lost one is left
		}{
			"vanished":             {vanished, 2 * time.Second, left},
			"vanished for long":    {vanished, 6500 * time.Millisecond, left},
			"vanished for longer":  {vanished, 13 * time.Second, left},
			"half-open":            {halfOpen, 2 * time.Second, left},
			"half-open for long":   {halfOpen, 9 * time.Second, left},
			"silent":               {silent, 2 * time.Second, left},
			"silent for long":      {silent, 9 * time.Second, left},
			"closing":              {closing, 4 * time.Second, 0},
			"closing for long":     {closing, 9 * time.Second, 0},
			"closing for a moment": {closing, time.Millisecond, 0},
			"slow":                 {slow, 0, 0},
		} {
			for _, ask := range some(name) {
				t.Run(name+"/"+ask.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						p := newPair(t, scheme, 0)
						defer p.end()
						if lost.after > 0 {
							taken := make(chan struct{})
							time.AfterFunc(lost.after, func() {
								p.takeOver()
								close(taken)
							})
							defer func() { <-taken }()
						}
						p.n.set(firstAddr, lost.fault)
						began := time.Now()
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						if err := ask.do(ctx, p.c, p.held); err != nil {
							t.Error(err)
						}
						if took, most := time.Since(began), max(lost.after, lost.least)+round; took > most {
							t.Errorf("it took %v, want at most %v", took, most)
						}
					})
				})
			}
		}
	})
}

// A client that begins while a server is lost is at the other one after one attempt, and slow ones have the time that
// they need.
func TestDialPastALostServer(t *testing.T) {
	overEach(t, func(t *testing.T, scheme string) {
		for name, lost := range map[string]struct {
			fault fault
			most  time.Duration
		}{
			"vanished":  {vanished, 1600 * time.Millisecond},
			"half-open": {halfOpen, 1600 * time.Millisecond},
			"silent":    {silent, 1600 * time.Millisecond},
			"closing":   {closing, 100 * time.Millisecond},
			"slow":      {slow, 12 * time.Second},
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPair(t, scheme, 0)
					defer p.end()
					p.takeOver()
					p.n.set(firstAddr, lost.fault)
					if lost.fault == slow {
						p.n.set(secondAddr, slow)
					}
					began := time.Now()
					c, err := client.DialThrough(t.Context(), p.n.dial, client.Config{
						Addrs: []string{scheme + firstAddr, scheme + secondAddr}, Agent: "late",
					})
					if err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took > lost.most {
						t.Errorf("it took %v, want at most %v", took, lost.most)
					}
					if err := c.Close(t.Context()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	})
}

// No server is left. The operation ends when its caller's patience does, with the outcome of a change unknown, and what
// was not sent as not carried out.
func TestNoServerLeft(t *testing.T) {
	const patience = 10 * time.Second
	overEach(t, func(t *testing.T, scheme string) {
		for name, f := range map[string]fault{
			"vanished": vanished, "half-open": halfOpen, "silent": silent, "closing": closing,
		} {
			for _, bound := range []string{"context", "RetryFor"} {
				for _, ask := range some(name + bound) {
					t.Run(name+"/"+bound+"/"+ask.name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							ctx, cancel := t.Context(), context.CancelFunc(func() {})
							retryFor, most := time.Duration(0), patience
							if bound == "RetryFor" {
								retryFor, most = patience, patience+6*time.Second+5*time.Second+2500*time.Millisecond
							} else {
								ctx, cancel = context.WithTimeout(ctx, patience)
							}
							defer cancel()
							p := newPair(t, scheme, retryFor)
							defer p.end()
							p.n.set(firstAddr, f)
							p.n.set(secondAddr, f)
							if f == closing {
								synctest.Wait() // the client knows
							}
							began := time.Now()
							err := ask.do(ctx, p.c, p.held)
							took := time.Since(began)
							t.Logf("after %v: %v", took, err)
							if err == nil {
								t.Fatal("it succeeded")
							}
							sent := f != closing || ask.name == "release" // which goes on without its caller
							if ask.changes && sent != isCode(err, interlock.CodeOutcomeUnknown) {
								t.Error(err)
							}
							if !sent && !errors.Is(err, client.ErrUnreachable) {
								t.Error(err)
							}
							if took > most {
								t.Errorf("it took %v, want at most %v", took, most)
							}
							if !sent && !strings.Contains(err.Error(), "closed the connection") {
								t.Errorf("the reason is not there: %v", err)
							}
						})
					})
				}
			}
		}
	})
}
