package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/cluster"
	"github.com/interlockdev/interlock/journal/remote"
	"github.com/interlockdev/interlock/placement"
)

// engine is the engine of a journal: its shared values, and which server owns each shard. It can be cut off
// from a server.
type engine struct {
	mu     sync.Mutex
	values map[string]remote.Value
	writes int
	owners []*shard // the newest owner of each shard
	hashed int      // shards that the directory is made with
	cut    map[string]bool
	// moves counts changes of owners.
	moves   int
	tenants map[string]*tenants // what the journals have of namespaces, for moves
}

func newEngine(shards int) *engine {
	return &engine{
		values: map[string]remote.Value{}, owners: make([]*shard, shards), cut: map[string]bool{},
		hashed: shards, tenants: map[string]*tenants{},
	}
}

// value is a shared value as one server reaches it.
type value struct {
	*engine
	name, server string
}

var errCut = errors.New("the engine does not answer")

func (v value) Load(context.Context) (remote.Value, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cut[v.server] {
		return remote.Value{}, errCut
	}
	return v.values[v.name], nil
}

func (v value) Swap(_ context.Context, data []byte, was string) (string, bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cut[v.server] {
		return "", false, errCut
	}
	if v.values[v.name].Version != was {
		return "", false, nil
	}
	v.writes++
	version := strconv.Itoa(v.writes)
	v.values[v.name] = remote.Value{Data: data, Version: version}
	return version, true, nil
}

// shard is one ownership.
type shard struct {
	*engine
	server string
	number int
	failed chan struct{}
	err    error
	ended  bool
}

func (s *shard) Failed() <-chan struct{} { return s.failed }
func (s *shard) Err() error              { return s.err }

// Leave takes half a second, as a server does.
func (s *shard) Leave(context.Context) {
	<-time.After(500 * time.Millisecond)
	s.end()
}
func (s *shard) Abandon(context.Context) { s.end() }

func (s *shard) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.owners[s.number] == s {
		s.owners[s.number] = nil
	}
}

// open fences the owner before.
func (e *engine) open(server string, number int) (cluster.Owned, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cut[server] {
		return nil, errCut
	}
	if old := e.owners[number]; old != nil {
		old.err = errors.New("fenced")
		close(old.failed)
	}
	s := &shard{engine: e, server: server, number: number, failed: make(chan struct{})}
	e.owners[number] = s
	e.moves++
	return s, nil
}

// node is a running server.
type node struct {
	*cluster.Node
	name string
	stop context.CancelFunc
	done chan struct{}
	err  error
}

func (e *engine) start(t *testing.T, name string, change ...func(*cluster.Config)) *node {
	t.Helper()
	cfg := cluster.Config{
		Me:        cluster.Member{Member: placement.Member{Reads: 1}, HTTP: "http://" + name},
		Directory: value{e, "directory", name}, Table: value{e, "servers", name},
		Open:    func(_ context.Context, s int) (cluster.Owned, error) { return e.open(name, s) },
		Fatal:   func(error) bool { return false },
		Changed: func(*cluster.View) {}, Logger: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&cfg)
	}
	n, err := cluster.Join(t.Context(), cfg, func(context.Context) (int, error) { return e.hashed, nil })
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() {
		stop() // after a failure it still runs
		// A shard that is being left when its server is killed ends by itself. The bubble must not end before it.
		<-time.After(time.Second)
	})
	out := &node{Node: n, name: name, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(out.done)
		out.err = n.Run(ctx)
	}()
	return out
}

// kill ends a server as kill -9 does: it still stands in the table, and nothing fences its journals yet.
func (n *node) kill() {
	n.stop()
	<-n.done
}

// drain takes at most as long as a server has for its shutdown.
func (n *node) drain(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := n.Drain(ctx); err != nil {
		t.Error(err)
	}
}

// shares counts the shards of each server. The count of "" is that of shards without an owner.
func (e *engine) shares() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	shares := map[string]int{}
	for _, s := range e.owners {
		if s == nil {
			shares[""]++
		} else {
			shares[s.server]++
		}
	}
	return shares
}

func (e *engine) wantShares(t *testing.T, want map[string]int) {
	t.Helper()
	if got := e.shares(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the shards are shared as %v, want %v", got, want)
	}
}

// A lone server takes all shards at once; others that join get their part, one shard after the other.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(16)
		a := e.start(t, "a")
		time.Sleep(2 * time.Second)
		e.wantShares(t, map[string]int{"a": 16})
		b, c := e.start(t, "b"), e.start(t, "c")
		time.Sleep(2 * time.Minute)
		got := e.shares()
		for _, n := range []*node{a, b, c} {
			if got[n.name] < 5 || got[n.name] > 6 {
				t.Errorf("%s has %d of 16 shards", n.name, got[n.name])
			}
		}
		if e.moves > 16+11 {
			t.Errorf("%d changes of owners", e.moves)
		}
		// Each server knows the owner of each shard.
		for _, n := range []*node{a, b, c} {
			for s, holder := range n.View().Holders {
				if owner := e.owners[s].server; holder == nil || holder.HTTP != "http://"+owner {
					t.Errorf("%s believes that %v owns shard %d, and %s does", n.name, holder, s, owner)
				}
				if (n.View().Owned[s] != nil) != (e.owners[s].server == n.name) {
					t.Errorf("%s has %v for shard %d of %s", n.name, n.View().Owned[s], s, e.owners[s].server)
				}
			}
		}
		for _, n := range []*node{a, b, c} {
			n.kill()
		}
	})
}

// Shares come to rest: servers that join at any moments get their parts, and then no shard changes hands any more.
func TestSharesComeToRest(t *testing.T) {
	for seed := range uint64(240) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			servers := 2 + rng.IntN(4)
			e := newEngine(servers * (1 + rng.IntN(4))) // all have as many in the end
			var nodes []*node
			for i := range servers {
				nodes = append(nodes, e.start(t, string(rune('a'+i))))
				<-time.After(time.Duration(rng.IntN(20_000)) * time.Millisecond)
			}
			e.shared(t, len(nodes))
			e.mu.Lock()
			before := e.moves
			e.mu.Unlock()
			<-time.After(time.Minute)
			e.mu.Lock()
			if e.moves != before {
				t.Errorf("seed %d: %d changes of owners after all shares were even", seed, e.moves-before)
			}
			e.mu.Unlock()
			for _, n := range nodes {
				n.kill()
			}
		})
	}
}

// The shards of a server that dies have an owner again within six seconds, and those of one that leaves in
// order within two.
func TestDeathAndDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(16)
		a, b, c := e.start(t, "a"), e.start(t, "b"), e.start(t, "c")
		time.Sleep(2 * time.Minute)
		e.mu.Lock()
		for i, s := range e.owners {
			if s.server == "b" {
				e.owners[i] = nil // its process is gone
			}
		}
		e.mu.Unlock()
		b.kill()
		time.Sleep(6 * time.Second)
		if n := e.shares()[""]; n > 0 {
			t.Errorf("%d shards have no owner 6 s after a death", n)
		}
		a.drain(t)
		a.kill()
		time.Sleep(1500 * time.Millisecond)
		e.wantShares(t, map[string]int{"c": 16})
		if n := len(c.View().Members); n != 1 {
			t.Errorf("%d members are left", n)
		}
		c.kill()
	})
}

// A server that leaves names the next holders of its seats and wakes them: its shards have owners as soon as they are
// left, and need the format that the new owner may write. It names none that it does not reach.
func TestHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(12)
		var mu sync.Mutex
		nodes, away := map[string]*node{}, ""
		add := func(name string, writes uint32) {
			n := e.start(t, name, func(c *cluster.Config) {
				c.Me.Reads, c.Writes = writes, writes
				c.Wake = func(_ context.Context, m cluster.Member) {
					mu.Lock()
					defer mu.Unlock()
					if to := strings.TrimPrefix(m.HTTP, "http://"); to != away {
						nodes[to].Look()
					}
				}
				c.Probe = func(_ context.Context, m cluster.Member) error {
					mu.Lock()
					defer mu.Unlock()
					if m.HTTP == "http://"+away {
						return errors.New("no answer")
					}
					return nil
				}
			})
			mu.Lock()
			defer mu.Unlock()
			nodes[name] = n
		}
		add("a", 1)
		time.Sleep(2 * time.Second)
		add("b", 2)
		add("c", 2)
		time.Sleep(2 * time.Minute)
		n := nodes["a"]
		n.drain(t) // each shard takes half a second
		n.kill()
		time.Sleep(60 * time.Millisecond)
		e.wantShares(t, map[string]int{"b": 6, "c": 6})
		mu.Lock()
		away = "c" // those that are there do not reach it
		mu.Unlock()
		add("d", 2)
		time.Sleep(2 * time.Second)
		nodes["b"].drain(t)
		nodes["b"].kill()
		time.Sleep(60 * time.Millisecond)
		if got := e.shares(); got["c"] > 6 || got["c"]+got["d"] != 12 {
			t.Errorf("the shards are shared as %v", got)
		}
		add("old", 1)
		time.Sleep(time.Minute)
		if got := e.shares(); got["old"] != 0 {
			t.Errorf("an older server owns %d shards that newer ones may have written to", got["old"])
		}
		for _, name := range []string{"c", "d", "old"} {
			nodes[name].kill()
		}
	})
}

// A server that is cut off from the engine loses its shards to others; when it is back, it is fenced, and gets
// its part again.
func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(4)
		a, b := e.start(t, "a"), e.start(t, "b")
		time.Sleep(time.Minute)
		e.wantShares(t, map[string]int{"a": 2, "b": 2})
		e.mu.Lock()
		e.cut["a"] = true
		e.mu.Unlock()
		time.Sleep(6 * time.Second)
		e.wantShares(t, map[string]int{"b": 4})
		for s, o := range a.View().Owned {
			if o != nil {
				t.Errorf("the server that was cut off believes that it owns shard %d", s)
			}
		}
		e.mu.Lock()
		e.cut["a"] = false
		e.mu.Unlock()
		time.Sleep(2 * time.Minute)
		e.wantShares(t, map[string]int{"a": 2, "b": 2})
		a.kill()
		b.kill()
	})
}

// An engine that answers no server for a while takes no shard from its owner. All servers, the asked one among them,
// show no sign of life meanwhile, and only then.
func TestEngineIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(4)
		a, b := e.start(t, "a"), e.start(t, "b")
		time.Sleep(time.Minute)
		moves := e.moves
		cut := func(yes bool) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.cut["a"], e.cut["b"] = yes, yes
		}
		silent := func(least, most time.Duration) {
			t.Helper()
			v := a.View()
			for _, m := range v.Members {
				if s := v.Silent(m.ID, time.Now()); s < least || s > most {
					t.Errorf("%s is silent for %v, want %v to %v", m.HTTP, s, least, most)
				}
			}
		}
		for range 60 {
			time.Sleep(100 * time.Millisecond)
			silent(0, 0)
		}
		cut(true)
		time.Sleep(time.Minute)
		silent(58*time.Second, 62*time.Second)
		cut(false)
		time.Sleep(time.Minute)
		silent(0, 0)
		e.wantShares(t, map[string]int{"a": 2, "b": 2})
		if e.moves != moves {
			t.Errorf("%d shards have changed their owner", e.moves-moves)
		}
		a.kill()
		b.kill()
	})
}

// A shard goes to another server if one cannot open its journal.
func TestOpenFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(4)
		var tried atomic.Int64
		a := e.start(t, "a", func(c *cluster.Config) {
			c.Open = func(context.Context, int) (cluster.Owned, error) {
				tried.Add(1)
				return nil, errors.New("damaged")
			}
			c.Fatal = func(error) bool { return true }
		})
		time.Sleep(5 * time.Second)
		if n := tried.Load(); n != 4 {
			t.Errorf("4 journals that cannot be opened were tried %d times in 5 s", n)
		}
		e.wantShares(t, map[string]int{"": 4})
		b := e.start(t, "b")
		time.Sleep(time.Minute)
		e.wantShares(t, map[string]int{"b": 4})
		a.kill()
		b.kill()
		if a.err != nil || b.err != nil {
			t.Error(a.err, b.err)
		}
	})
}

// A node of one shard that no server of this version can open ends.
func TestFatal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, damaged := newEngine(1), errors.New("damaged")
		a := e.start(t, "a", func(c *cluster.Config) {
			c.Open = func(context.Context, int) (cluster.Owned, error) { return nil, damaged }
			c.Fatal = func(err error) bool { return errors.Is(err, damaged) }
		})
		<-a.done
		if !errors.Is(a.err, damaged) {
			t.Errorf("it ended with %v", a.err)
		}
	})
}

// A server that cannot read what a shard's owner may have written does not take it over.
func TestMixedVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(4)
		newer := e.start(t, "newer", func(c *cluster.Config) { c.Me.Reads, c.Writes = 2, 2 })
		time.Sleep(2 * time.Second)
		older := e.start(t, "older")
		time.Sleep(time.Minute)
		e.wantShares(t, map[string]int{"newer": 4})
		newer.drain(t)
		newer.kill()
		time.Sleep(10 * time.Second)
		e.wantShares(t, map[string]int{"": 4})
		again := e.start(t, "again", func(c *cluster.Config) { c.Me.Reads, c.Writes = 2, 2 })
		time.Sleep(10 * time.Second)
		e.wantShares(t, map[string]int{"again": 4})
		again.kill()
		older.kill()
	})
}

// Servers of a newer version can be exchanged for older ones again, as long as no namespace has moved. After a move
// only its two shards need the newer ones.
func TestUpgradeUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(4)
		upgraded := func(c *cluster.Config) { c.Me.Reads, c.Writes = 2, 1 }
		newer := e.start(t, "newer", upgraded)
		time.Sleep(10 * time.Second)
		older := e.start(t, "older")
		time.Sleep(10 * time.Second)
		newer.drain(t)
		newer.kill()
		time.Sleep(10 * time.Second)
		e.wantShares(t, map[string]int{"older": 4})
		again := e.start(t, "again", upgraded)
		time.Sleep(time.Second)
		if _, err := again.Move(t.Context(), "tenant", 0); !errors.Is(err, cluster.ErrOlder) {
			t.Errorf("a move beside an older server: %v", err)
		}
		older.drain(t)
		older.kill()
		time.Sleep(10 * time.Second)
		e.wantShares(t, map[string]int{"again": 4})
		if _, err := again.Move(t.Context(), "tenant", (placement.Shard("tenant", 4)+1)%4); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if err := e.check("tenant"); err != nil {
			t.Error(err)
		}
		last := e.start(t, "last")
		time.Sleep(10 * time.Second)
		again.drain(t)
		again.kill()
		time.Sleep(10 * time.Second)
		e.wantShares(t, map[string]int{"last": 2, "": 2})
		last.kill()
	})
}

// A reservation needs that all servers are gone, and keeps new ones away until it is released.
func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(4)
		reserve := func() (*cluster.Reservation, error) {
			return cluster.Reserve(t.Context(), value{e, "directory", "tool"}, value{e, "servers", "tool"}, "the tool")
		}
		a := e.start(t, "a")
		time.Sleep(10 * time.Second)
		_, err := reserve()
		if inUse, ok := errors.AsType[*cluster.InUseError](err); !ok || inUse.HTTP != "http://a" {
			t.Errorf("reserving with a live server: %v", err)
		}
		a.kill() // it still stands in the table
		r, err := reserve()
		if err != nil || r.Directory.Shards != 4 {
			t.Fatalf("reserving after the server's death: %+v, %v", r, err)
		}
		moves := e.moves
		b := e.start(t, "b")
		time.Sleep(time.Minute)
		if e.moves != moves {
			t.Error("a server has opened a shard that is reserved")
		}
		r.Release(t.Context())
		time.Sleep(10 * time.Second)
		e.wantShares(t, map[string]int{"b": 4})
		b.kill()
	})
}
