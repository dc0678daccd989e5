package scenariotest

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/history"
	"github.com/interlockdev/interlock/internal/test/search"
)

var seed = flag.Uint64("seed", 0, "what the agents of a history do, and which fault comes when; 0: the next one")

// crowd is the agents of a history, in the processes of their libraries.
type crowd struct {
	*testing.T
	stage     *stage
	record    *history.Recorder
	processes []*process
	agents    []*agent

	mu     sync.Mutex // guards faults
	faults map[string]int
}

// fault counts a fault.
func (c *crowd) fault(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults[kind]++
}

// add starts a process with an agent for each of settings.
func (c *crowd) add(ctx context.Context, l *Library, agents ...*agent) {
	c.Helper()
	clients := map[string]settings{}
	for i, a := range agents {
		number := uint64(len(c.agents) + i)
		a.name = fmt.Sprintf("%s-%d", strings.ReplaceAll(l.Name, " ", "-"), number)
		a.fault = c.fault
		a.record, a.random = c.record, rand.New(rand.NewPCG(*seed, number))
		clients[a.name] = a.settings()
	}
	p, err := c.stage.launch(ctx, l, clients)
	if err != nil {
		c.Fatal(err)
	}
	for _, a := range agents {
		a.process = p
	}
	c.processes, c.agents = append(c.processes, p), append(c.agents, agents...)
}

// Fault is one that the servers of a history bring about themselves.
type Fault struct {
	Name string
	// Do lets it come, calls work, which returns when the agents have begun some more operations, and ends it.
	Do func(work func())
}

// disturb lets one fault after the other come, each when so many more operations have begun, until ctx ends. It closes
// come when each of the servers' own has come: these are the first.
func (c *crowd) disturb(ctx context.Context, own []Fault, come chan<- struct{}) {
	var list []Fault
	for _, o := range []order{
		{Fault: "cut"},
		{Fault: loseAnswer, Of: "acquireLease"},
		{Fault: loseAnswer, Of: "commitState", Times: 2},
		{Fault: loseAnswer, Of: "releaseLease"},
		{Fault: loseRequest},
		{Fault: repeated, Of: "acquireLease"},
		{Fault: repeated, Of: "commitState"},
		{Fault: delayed, Ms: 100},
		{Server: "restart"},
	} {
		list = append(list, Fault{o.Fault + o.Server, func(func()) {
			if err := c.stage.carryOut(ctx, &o); err != nil {
				c.Error(err)
			}
		}})
	}
	worked := func() {
		select {
		case <-c.record.After(15):
		case <-ctx.Done():
		}
	}
	random := rand.New(rand.NewPCG(*seed, 1<<32))
	pass := func(list []Fault) {
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for _, f := range list {
			if worked(); ctx.Err() != nil {
				return
			}
			f.Do(worked)
			c.fault(f.Name)
		}
	}
	func() {
		defer close(come) // also if a fault ends this goroutine
		pass(own)
	}()
	for list = append(list, own...); ctx.Err() == nil; {
		pass(list)
	}
}

// History lets clients of all libraries, and a program for Redis where the servers answer it, take the keys at the same
// time and write under their leases, while connections break, answers are lost and repeated, the active server is
// killed and started again, calls are cancelled, bodies fail, handles are dropped, processes are stopped for longer
// than their ttl, and one is killed. The servers' own faults come first. What their callers are shown must be a history
// that is possible. In the end no key is left behind.
func History(t *testing.T, servers Servers, own ...Fault) {
	Build(t)
	if *seed == 0 {
		*seed, _ = search.Seeds(t, 1, 1, 1)
	}
	t.Logf("-seed=%d", *seed)
	ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
	defer cancel()
	c := &crowd{T: t, stage: newStage(t, servers), record: history.NewRecorder(), faults: map[string]int{}}
	c.prepare(ctx)
	libraries := Libraries()
	for _, l := range libraries {
		c.add(ctx, l, &agent{ttl: lasting}, &agent{ttl: lasting, hasty: true})
		sleeper := &agent{ttl: brief}
		sleeper.holding = func() error {
			c.fault("sigstop")
			return sleeper.process.sleep(ctx, 2*brief)
		}
		c.add(ctx, l, sleeper)
	}
	victim := &agent{ttl: brief}
	victim.holding = func() error { victim.process.kill(); return nil }
	c.add(ctx, libraries[1+*seed%3], victim)
	c.fault("kill9")

	disturbing, enough := context.WithCancel(ctx)
	var faults, all sync.WaitGroup
	for _, g := range c.stage.redis {
		a := &redisAgent{name: "redis", addr: g.addr, record: c.record, random: rand.New(rand.NewPCG(*seed, 1<<33))}
		all.Go(func() {
			if err := a.work(ctx, 60); err != nil {
				t.Error(err)
			}
		})
	}
	come := make(chan struct{})
	faults.Go(func() { c.disturb(disturbing, own, come) })
	for _, a := range c.agents {
		all.Go(func() {
			if err := a.work(ctx, 6, come); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	enough()
	faults.Wait()
	c.finish(ctx)
	c.record.VerifyResults(t)
	c.mustFind(c.record.Ops())
	for _, kind := range slices.Sorted(maps.Keys(c.faults)) {
		t.Attr("count.faults."+kind, fmt.Sprint(c.faults[kind]))
	}
}

// prepare lets only holders write the documents of the hot keys.
func (c *crowd) prepare(ctx context.Context) {
	c.Helper()
	for path, body := range map[string]any{
		"/v1/patterns/hot": map[string]any{"pattern": "hot/{id}", "write": "lease"},
		"/v1/namespace":    map[string]any{"closed": false},
	} {
		if err := c.stage.ask(ctx, http.MethodPut, path, body, &struct{}{}); err != nil {
			c.Fatal(err)
		}
	}
}

// finish ends the processes, and then takes each key and reads its document once more.
func (c *crowd) finish(ctx context.Context) {
	c.Helper()
	victim := len(c.processes) - 1
	for i, p := range c.processes {
		if err := p.end(); err != nil && i != victim {
			c.Errorf("a runner: %v", err)
		}
	}
	last := &agent{ttl: lasting}
	c.add(ctx, Libraries()[0], last)
	for _, key := range hotKeys {
		lease, err := last.acquire(key, 60_000)
		if err != nil || lease == nil {
			c.Fatalf("%s is not free in the end: %v", key, err)
		}
		if _, err := last.read(key); err != nil {
			c.Error(err)
		}
	}
	if err := last.process.end(); err != nil {
		c.Error(err)
	}
}

// fewChanges is how many operations may be changed in vain: a history may have nothing after them that contradicts.
const fewChanges = 4

// mustFind changes the history in ways that no server and no library may show, and checks that each is found, if the
// history has enough operations of the kind, and at least one in any case.
func (c *crowd) mustFind(ops []*history.Op) {
	c.Helper()
	kinds := 0
	for _, change := range []struct {
		what string
		made func(op *history.Op) bool
	}{
		{"a write that goes ahead though its lease is lost", func(op *history.Op) bool {
			if op.Kind != history.Commit || op.Code == "" || op.Code == interlock.CodeStale {
				return false
			}
			op.Code, op.Version = "", 1<<40
			return true
		}},
		{"a fence that counts after its lease", func(op *history.Op) bool {
			if op.Kind != history.CheckFence || op.Code != interlock.CodeFenced {
				return false
			}
			op.Code = ""
			return true
		}},
		{"a client that regards its lost lease as held", func(op *history.Op) bool {
			if op.Kind != history.Held || op.Code == "" {
				return false
			}
			op.Code = ""
			return true
		}},
		{"a fence that is lower than an earlier one", func(op *history.Op) bool {
			if op.Granted == nil || op.Call < time.Second {
				return false
			}
			op.Granted = &history.Grant{Lease: op.ID, Fence: 1, Claims: op.Claims}
			return true
		}},
	} {
		found, tried := false, 0
		for i, op := range ops {
			changed := *op
			if !change.made(&changed) {
				continue
			}
			tried++
			copied := slices.Clone(ops)
			copied[i] = &changed
			if found = len(history.CheckResults(copied)) > 0; found {
				break
			}
		}
		if found {
			kinds++
		} else if tried > fewChanges {
			c.Errorf("the check finds nothing in a history with %s, %d times", change.what, tried)
		}
	}
	if kinds == 0 {
		c.Error("the check finds nothing in changed histories")
	}
}
