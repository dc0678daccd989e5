package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/cluster"
	"github.com/interlockdev/interlock/placement"
)

// part is what the journal of a shard has of a namespace. Its state is open, closed (left behind by a copy), or a
// copy. It stays when the owner changes.
type part struct {
	open     bool
	left     bool // it has moved on, and the shard refuses it
	move     uint64
	state    cluster.MovingState
	contents int // how many writes it has seen
}

// tenants is what the journals have of one namespace, in all shards, and how many writes were acknowledged.
type tenants struct {
	parts  map[int]*part
	acked  int
	faults *rand.Rand // nil without faults
	step   func()     // called with each step
}

var errLostAnswer = errors.New("the answer was lost")

// place returns the part of a shard. The namespace begins in the shard of its hash.
func (e *engine) place(ns string, shard int) *part {
	if e.tenants[ns] == nil {
		e.tenants[ns] = &tenants{parts: map[int]*part{placement.Shard(ns, e.hashed): {open: true}}}
	}
	parts := e.tenants[ns].parts
	if parts[shard] == nil {
		parts[shard] = &part{}
	}
	return parts[shard]
}

// write sends a write to a shard, as a server with some directory does. It is acknowledged only where the
// namespace is open.
func (e *engine) write(ns string, shard int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.place(ns, shard)
	if !p.open || e.owners[shard] == nil {
		return false
	}
	p.contents++
	e.tenants[ns].acked++
	return true
}

// check returns what is wrong with a namespace: two shards that answer for it, or a write that is gone.
func (e *engine) check(ns string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.place(ns, 0)
	t, open := e.tenants[ns], 0
	for s, p := range t.parts {
		if !p.open {
			continue
		}
		if open++; p.contents != t.acked {
			return fmt.Errorf("shard %d has %d writes, and %d were acknowledged", s, p.contents, t.acked)
		}
	}
	if open > 1 {
		return fmt.Errorf("%d shards answer for namespace %q", open, ns)
	}
	return nil
}

func (s *shard) Moving(context.Context) (list []cluster.Moving, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owners[s.number] != s || s.cut[s.server] {
		return nil, errCut
	}
	for ns, t := range s.tenants {
		if p := t.parts[s.number]; p != nil && p.state != 0 {
			list = append(list, cluster.Moving{Namespace: ns, Move: p.move, State: p.state})
		}
	}
	return list, nil
}

func (s *shard) Take(_ context.Context, step cluster.MoveStep, m cluster.Moving) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owners[s.number] != s || s.cut[s.server] {
		return false, errCut
	}
	t := s.tenants[m.Namespace]
	if t == nil {
		s.place(m.Namespace, s.number)
		t = s.tenants[m.Namespace]
	}
	if t.step != nil {
		t.step()
	}
	if t.faults != nil && t.faults.IntN(4) == 0 {
		return false, errLostAnswer // it was not taken
	}
	p := s.place(m.Namespace, s.number)
	mine := p.move == m.Move
	refused := fmt.Errorf("step %d of move %d: the namespace is %+v", step, m.Move, *p)
	switch step {
	case cluster.CloseNamespace:
		if p.state != 0 || p.left {
			return false, refused
		}
		*p = part{move: m.Move, state: cluster.Closed, contents: p.contents}
	case cluster.ReopenNamespace:
		if !mine || p.state != cluster.Closed {
			return false, refused
		}
		*p = part{open: true, contents: p.contents}
	case cluster.LeaveNamespace:
		if !mine || p.state != cluster.Closed {
			return false, refused
		}
		*p = part{left: true}
	case cluster.CopyNamespace:
		from := s.place(m.Namespace, m.Other)
		if from.state != cluster.Closed || from.move != m.Move || p.open || p.state == cluster.Closed {
			return false, refused
		}
		*p = part{move: m.Move, state: cluster.Copied, contents: from.contents}
		if t.faults != nil && t.faults.IntN(4) == 0 {
			p.state, p.contents = cluster.Copying, 0
			return false, errLostAnswer
		}
	case cluster.OpenNamespace:
		if !mine || p.state != cluster.Copied {
			return false, refused
		}
		*p = part{open: true, contents: p.contents}
	case cluster.DropNamespace:
		if !mine || p.state < cluster.Copying {
			return false, refused
		}
		*p = part{}
	}
	if t.faults != nil && t.faults.IntN(4) == 0 {
		return true, errLostAnswer // it was taken, and its answer is lost
	}
	return true, nil
}

// settle waits until no move is under way, and checks where the namespace answers.
func (e *engine) settle(t *testing.T, n *node, ns string) {
	t.Helper()
	<-time.After(2 * time.Second) // until the server has seen the directory
	for range 300 {
		if d := n.View().Directory; len(d.Moves) == 0 && e.write(ns, d.Shard(ns)) {
			if err := e.check(ns); err != nil {
				t.Fatal(err)
			}
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	t.Fatalf("after 30 s the directory has %+v, and the namespace is %+v", n.View().Directory, e.tenants[ns].parts)
}

// shared waits until so many servers share the shards evenly: before, a shard has no owner while it changes hands.
func (e *engine) shared(t *testing.T, servers int) {
	t.Helper()
	for range 3000 {
		<-time.After(100 * time.Millisecond)
		owners := e.shares()
		shares := slices.Sorted(maps.Values(owners))
		if owners[""] == 0 && len(shares) == servers && shares[servers-1] <= shares[0]+1 {
			<-time.After(2 * time.Second) // until each of them has seen it
			return
		}
	}
	t.Fatalf("after five minutes the shards are shared as %v", e.shares())
}

// TestMoveNamespace: a namespace moves between two servers and back, in a few seconds. While it moves it answers in
// one shard or in none.
func TestMoveNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(4)
		a, b := e.start(t, "a"), e.start(t, "b")
		e.shared(t, 2)
		home := placement.Shard("acme", 4)
		for _, to := range []int{(home + 1) % 4, (home + 2) % 4, home} {
			if !e.write("acme", a.View().Directory.Shard("acme")) {
				t.Fatal("the namespace does not answer before the move")
			}
			began := time.Now()
			m, err := a.Move(t.Context(), "acme", to)
			if err != nil || m.To != to {
				t.Fatalf("%+v, %v", m, err)
			}
			again, err := b.Move(t.Context(), "acme", to)
			if ended := err != nil && e.write("acme", to); !ended && (err != nil || again.Number != m.Number) {
				t.Errorf("the same move again is %+v, %v", again, err)
			}
			for !e.write("acme", to) {
				e.write("acme", m.From) // as a server with an old directory does
				time.Sleep(20 * time.Millisecond)
				if err := e.check("acme"); err != nil || time.Since(began) > time.Minute {
					t.Fatalf("the move has no end: %v", err)
				}
			}
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("the move takes %v", took)
			}
			e.settle(t, b, "acme")
			if b.View().Directory.Shard("acme") != to || e.write("acme", m.From) {
				t.Errorf("the source answers after the move")
			}
		}
		a.kill()
		b.kill()
	})
}

// TestCrashInEachStep kills the owner of one of both shards, or of both, at each step of a move: it comes to
// its end, or to its beginning if it is taken back.
func TestCrashInEachStep(t *testing.T) {
	for at := range 5 {
		for _, dies := range []string{"source", "target", "both"} {
			for _, back := range []bool{false, true} {
				t.Run(fmt.Sprintf("step %d, %s, taken back %v", at, dies, back), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { crash(t, at, dies, back) })
				})
			}
		}
	}
}

func crash(t *testing.T, at int, dies string, back bool) {
	e := newEngine(4)
	nodes := map[string]*node{}
	for _, name := range []string{"a", "b", "c"} {
		nodes[name] = e.start(t, name)
	}
	e.shared(t, len(nodes))
	from := placement.Shard("acme", 4)
	to := (from + 1) % 4
	if !e.write("acme", from) {
		t.Fatal("the namespace does not answer before the move")
	}
	steps, reached := 0, make(chan struct{}, 100)
	e.mu.Lock()
	e.tenants["acme"].step = func() {
		if steps++; steps > at {
			reached <- struct{}{}
		}
	}
	victims := map[string]bool{}
	if dies != "target" {
		victims[e.owners[from].server] = true
	}
	if dies != "source" {
		victims[e.owners[to].server] = true
	}
	e.mu.Unlock()
	var alive *node
	for name, n := range nodes {
		if !victims[name] {
			alive = n
		}
	}
	m, err := alive.Move(t.Context(), "acme", to)
	if err != nil {
		t.Fatal(err)
	}
	if at > 0 {
		select {
		case <-reached:
		case <-time.After(10 * time.Second): // there are fewer steps
		}
	}
	for name := range victims {
		e.mu.Lock()
		e.cut[name] = true // what is under way has no effect any more
		e.mu.Unlock()
		nodes[name].kill()
	}
	end := to
	if back {
		switch err := alive.TakeBack(t.Context(), m.Number); {
		case err == nil:
			end = from
		case !errors.Is(err, placement.ErrSwitched) && !errors.Is(err, placement.ErrUnknownMove):
			t.Error(err)
		}
	}
	e.settle(t, alive, "acme")
	if got := alive.View().Directory.Shard("acme"); got != end {
		t.Errorf("the namespace is in shard %d, want %d", got, end)
	}
	for name, n := range nodes {
		if !victims[name] {
			n.kill()
		}
	}
}

// TestMovesWithFaults: namespaces move here and there, some are taken back, steps fail with and without effect,
// and servers die and come back. No write is lost, and never do two shards answer for one namespace.
func TestMovesWithFaults(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			e := newEngine(8)
			nodes := []*node{e.start(t, "a0"), e.start(t, "b0"), e.start(t, "c0")}
			time.Sleep(8 * time.Second)
			names := []string{"acme", "bolt", "cron"}
			for _, ns := range names {
				e.mu.Lock()
				e.place(ns, 0)
				e.tenants[ns].faults = rand.New(rand.NewPCG(seed, 2)) // used under e.mu
				e.mu.Unlock()
			}
			for round := range 150 {
				ns, n := names[rng.IntN(3)], nodes[rng.IntN(3)]
				switch rng.IntN(12) {
				case 0:
					_, _ = n.Move(t.Context(), ns, rng.IntN(8)) // refused where another one is under way
				case 1:
					if list := n.View().Directory.Moves; len(list) > 0 {
						_ = n.TakeBack(t.Context(), list[rng.IntN(len(list))].Number)
					}
				case 2:
					if round%3 == 0 {
						i := rng.IntN(3)
						e.mu.Lock()
						e.cut[nodes[i].name] = true
						e.mu.Unlock()
						nodes[i].kill()
						nodes[i] = e.start(t, fmt.Sprintf("%s%d", nodes[i].name[:1], round+1))
					}
				default:
					e.write(ns, n.View().Directory.Shard(ns))
					e.write(ns, rng.IntN(8)) // as a server with any other directory does
				}
				time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
				for _, ns := range names {
					if err := e.check(ns); err != nil {
						t.Fatalf("seed %d, round %d: %v", seed, round, err)
					}
				}
			}
			e.mu.Lock()
			for _, ns := range names {
				e.tenants[ns].faults = nil
			}
			e.mu.Unlock()
			for _, ns := range names {
				e.settle(t, nodes[0], ns)
			}
			for _, n := range nodes {
				n.kill()
			}
		})
	}
}

// TestEvacuate: a server that is evacuated leaves its shards and stays, and takes its share again when that ends.
func TestEvacuate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(8)
		a, b := e.start(t, "a"), e.start(t, "b")
		time.Sleep(20 * time.Second)
		e.wantShares(t, map[string]int{"a": 4, "b": 4})
		if err := b.Evacuate(t.Context(), "http://a", true); err != nil {
			t.Fatal(err)
		}
		if err := b.Evacuate(t.Context(), "http://x", true); !errors.Is(err, cluster.ErrUnknownMember) {
			t.Errorf("an unknown server: %v", err)
		}
		time.Sleep(30 * time.Second)
		e.wantShares(t, map[string]int{"b": 8})
		if n := len(b.View().Members); n != 2 {
			t.Errorf("the table has %d servers", n)
		}
		if err := b.Evacuate(t.Context(), "http://a", false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(60 * time.Second)
		e.wantShares(t, map[string]int{"a": 4, "b": 4})
		a.kill()
		b.kill()
	})
}

// TestAddShards: shards that are added in another store get owners at all servers, also at one that starts later, and
// namespaces can be moved there and back.
func TestAddShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(4)
		a, b := e.start(t, "a"), e.start(t, "b")
		e.shared(t, 2)
		if !e.write("acme", placement.Shard("acme", 4)) {
			t.Fatal("the namespace does not answer")
		}
		e.mu.Lock()
		e.owners = append(e.owners, nil, nil)
		e.mu.Unlock()
		if err := a.AddShards(t.Context(), "fast", 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		e.wantShares(t, map[string]int{"a": 3, "b": 3})
		for _, n := range []*node{a, b} {
			if v := n.View(); len(v.Owned) != 6 || len(v.Holders) != 6 || v.Directory.Store(5) != "fast" {
				t.Errorf("server %s sees %d shards, the last in %q", n.name, len(v.Owned), v.Directory.Store(5))
			}
		}
		if _, err := b.Move(t.Context(), "acme", 5); err != nil {
			t.Fatal(err)
		}
		e.settle(t, a, "acme")
		if !e.write("acme", 5) {
			t.Error("the namespace does not answer in the new shard")
		}
		c := e.start(t, "c")
		e.shared(t, 3)
		e.wantShares(t, map[string]int{"a": 2, "b": 2, "c": 2})
		if _, err := c.Move(t.Context(), "acme", placement.Shard("acme", 4)); err != nil {
			t.Fatal(err)
		}
		e.settle(t, c, "acme")
		for _, n := range []*node{a, b, c} {
			n.kill()
		}
	})
}
