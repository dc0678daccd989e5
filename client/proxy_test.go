package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/test/busy"
)

// proxy is a TCP proxy that cuts each connection after a number of bytes, at any moment: within
// a frame, after a request and before its answer.
type proxy struct {
	listener net.Listener
	target   string
	open     sync.WaitGroup

	mu    sync.Mutex
	rand  *rand.Rand
	limit int // mean bytes a connection carries in one direction; 0 for no limit
	conns map[net.Conn]struct{}
	cuts  atomic.Int64
}

func newProxy(t *testing.T, target string, seed uint64, limit int) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		listener: l, target: target, rand: rand.New(rand.NewPCG(seed, 1)), limit: limit, conns: map[net.Conn]struct{}{},
	}
	p.open.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.open.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = in.Close()
			continue
		}
		p.mu.Lock()
		up, down := p.budget(), p.budget()
		p.conns[in], p.conns[out] = struct{}{}, struct{}{}
		p.mu.Unlock()
		p.open.Go(func() { p.copy(out, in, up) })
		p.open.Go(func() { p.copy(in, out, down) })
	}
}

func (p *proxy) budget() int64 {
	if p.limit == 0 {
		return 1 << 60
	}
	return 2000 + p.rand.Int64N(2*int64(p.limit))
}

func (p *proxy) copy(to, from net.Conn, budget int64) {
	if n, _ := io.CopyN(to, from, budget); n == budget {
		p.cuts.Add(1)
	}
	_ = to.Close()
	_ = from.Close()
	p.mu.Lock()
	delete(p.conns, to)
	delete(p.conns, from)
	p.mu.Unlock()
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) setLimit(limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = limit
}

// Agents of several clients count under leases while their connections are cut again and again.
// No count is lost, no two leases overlap, and fences only grow.
func TestCutConnections(t *testing.T) {
	w := onDisk(t)
	p := newProxy(t, w.listen(), 7, 6000)
	const (
		clients = 3
		agents  = 8
		rounds  = 25
		keys    = 4
	)
	type account struct {
		inside atomic.Int32
		count  int
		fence  interlock.Fence
	}
	var accounts [keys]account
	var all sync.WaitGroup
	for i := range clients {
		c, err := client.Dial(
			context.Background(),
			client.Config{Addrs: []string{p.listener.Addr().String()}, Agent: fmt.Sprint("client ", i), RetryFor: time.Minute},
		)
		if err != nil {
			t.Fatal(err)
		}
		defer closeClient(t, c)
		for agent := range agents {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), uint64(agent)))
				for range rounds {
					n := r.IntN(keys)
					a := &accounts[n]
					lease, err := c.Acquire(busy.Context(t), exclusively(interlock.Key(fmt.Sprint("account:", n))))
					if err != nil {
						t.Error(err)
						return
					}
					if a.inside.Add(1) != 1 {
						t.Error("two agents are inside")
					}
					if lease.Fence() <= a.fence {
						t.Errorf("fence %d after %d", lease.Fence(), a.fence)
					}
					a.fence = lease.Fence()
					a.count++
					a.inside.Add(-1)
					if err := lease.Release(busy.Context(t), client.Outcome{Note: fmt.Sprint(a.count)}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	p.setLimit(0)
	total := 0
	for i := range accounts {
		total += accounts[i].count
	}
	if want := clients * agents * rounds; total != want {
		t.Errorf("counted %d instead of %d", total, want)
	}
	t.Logf("%d connections were cut within a message", p.cuts.Load())
	if p.cuts.Load() < 5 {
		t.Error("too few connections were cut for this to mean anything")
	}
}

// Requests that are given up at any moment, over a connection that breaks, leave
// nothing behind: in the end every key is free.
func TestGivenUpRequestsLeaveNothing(t *testing.T) {
	w := inMemory(t)
	p := newProxy(t, w.listen(), 11, 8000)
	c, err := client.Dial(
		context.Background(), client.Config{Addrs: []string{p.listener.Addr().String()}, Agent: "a", RetryFor: time.Minute},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer closeClient(t, c)
	var all sync.WaitGroup
	var got, gaveUp atomic.Int64
	for agent := range 16 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(13, uint64(agent)))
			for range 25 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(40_000))*time.Microsecond)
				lease, err := c.Acquire(ctx, exclusively("k", interlock.Key(fmt.Sprint("k", r.IntN(3)))))
				if err == nil {
					got.Add(1)
					_ = lease.Release(busy.Context(t), client.Outcome{})
				} else if gaveUp.Add(1); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	t.Logf("%d granted, %d given up, %d connections cut", got.Load(), gaveUp.Load(), p.cuts.Load())
	if got.Load() == 0 || gaveUp.Load() == 0 || p.cuts.Load() == 0 {
		t.Error("too little happened for this to mean anything")
	}
	p.setLimit(0)
	s := &stage{t: t, w: w, ctx: context.Background()}
	other := w.dial(client.Config{Agent: "b"})
	s.acquire(other, exclusively("k", "k0", "k1", "k2"))
}

// Tasks are done once each while the connections of their submitters and workers are cut
// again and again.
func TestCutConnectionsOfWorkers(t *testing.T) {
	const workers, submitters, each, keys = 2, 4, 60, 6
	w := onDisk(t)
	p := newProxy(t, w.listen(), 17, 9000)
	dial := func(agent string) *client.Client {
		c, err := client.Dial(
			context.Background(),
			client.Config{Addrs: []string{p.listener.Addr().String()}, Agent: agent, RetryFor: time.Minute},
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeClient(t, c) })
		return c
	}
	s := &stage{t: t, w: w, ctx: context.Background(), client: dial}
	s.queue(interlock.TaskQueue{Name: "q", MaxAttempts: 1})
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(s.ctx)
	var runs atomic.Int64
	for i := range workers {
		c := dial(fmt.Sprint("worker ", i))
		all.Go(func() {
			if err := c.Work(ctx, client.Worker{
				Queue: "q", Concurrency: 4,
				Handle: func(_ context.Context, job *client.Job) (client.Done, error) {
					runs.Add(1)
					key := job.Task().Claims[0].Key
					return client.Done{Reads: client.Seen(job.Document(key)), Writes: []interlock.Write{client.Add(key, 1)}}, nil
				},
				OnError: func(_ *client.Job, err error) { t.Error(err) },
			}); err != nil {
				t.Error(err)
			}
		})
	}
	var submitted sync.WaitGroup
	for i := range submitters {
		c := dial(fmt.Sprint("submitter ", i))
		for j := range each {
			submitted.Go(func() {
				task, err := c.Submit(s.ctx, client.TaskSpec{Queue: "q", Claims: on(interlock.Key(fmt.Sprint("k", j%keys)))})
				if err == nil {
					_, err = c.Await(s.ctx, task.ID)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	submitted.Wait()
	cancel()
	all.Wait()
	t.Logf("%d runs, %d connections cut", runs.Load(), p.cuts.Load())
	if runs.Load() != submitters*each || p.cuts.Load() == 0 {
		t.Errorf("%d runs of %d tasks", runs.Load(), submitters*each)
	}
	p.setLimit(0)
	c := w.dial(client.Config{Agent: "auditor"})
	for i := range keys {
		if doc, err := c.Document(s.ctx, interlock.Key(fmt.Sprint("k", i))); err != nil ||
			string(doc.Body) != fmt.Sprint(submitters*each/keys) {
			t.Errorf("k%d: %s, %v", i, doc.Body, err)
		}
	}
}
