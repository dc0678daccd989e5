package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// fewObjects is how many objects a command on one lease may look at, and one object that
// a step has begun with when it has looked at engine.StepObjects.
const fewObjects = 50

// bounded fails if the last step has looked at more than its bound.
func (l *load) bounded() {
	l.t.Helper()
	if n := l.e.Objects(); n > engine.StepObjects+fewObjects {
		l.t.Fatalf("a step looks at %d objects", n)
	}
}

// settleBounded runs the steps that are left, and fails if one of them, or the last one before,
// looks at more than its bound. It returns all effects and the number of steps.
func (l *load) settleBounded() (told []engine.Effect, steps int) {
	l.t.Helper()
	for ; ; steps++ {
		l.bounded()
		told = append(told, l.out.Effects...)
		if !l.e.IsUnfinished() {
			return told, steps
		}
		l.step(&engine.Tick{Head: engine.Head{At: l.now}})
	}
}

// TestLargeSetsTakeSteps has one command be about more objects than one step may look at:
// it is answered at once, steps that are due at once do the rest, and none looks at more.
func TestLargeSetsTakeSteps(t *testing.T) {
	const n = 2*engine.StepObjects + 500
	wait := func(l *load, s interlock.SessionID, flow string) {
		l.step(&engine.Acquire{
			Head: l.head(s), ID: l.id(), LeaseRequest: interlock.LeaseRequest{
				Flow: flow, OnConflict: interlock.Wait,
				Claims: []interlock.Claim{{Key: interlock.Key("hot-" + flow[len(flow)-1:]), Mode: interlock.Exclusive}},
			}, Attach: true,
		})
	}
	for _, x := range []struct {
		name   string
		setUp  func(*load, interlock.SessionID)
		again  func(*load, interlock.SessionID) engine.Command
		leases int // that are left
		waits  int
	}{
		{
			name: "close session with leases",
			setUp: func(l *load, s interlock.SessionID) {
				for i := range n {
					l.acquire(s, "", time.Hour, fmt.Sprint("k", i))
				}
			},
			again: func(l *load, s interlock.SessionID) engine.Command {
				return &engine.CloseSession{Head: l.head(s)}
			},
		},
		{
			name: "close session with flows",
			setUp: func(l *load, s interlock.SessionID) {
				for i := range n {
					l.acquire(s, fmt.Sprint(i), time.Hour, fmt.Sprint("k", i))
				}
			},
			again: func(l *load, s interlock.SessionID) engine.Command {
				return &engine.CloseSession{Head: l.head(s)}
			},
		},
		{
			name: "close session with waits",
			setUp: func(l *load, s interlock.SessionID) {
				for i := range n {
					wait(l, s, fmt.Sprint(i))
				}
			},
			again: func(l *load, s interlock.SessionID) engine.Command {
				return &engine.CloseSession{Head: l.head(s)}
			},
			leases: 10,
		},
		{
			name: "detach waits",
			setUp: func(l *load, s interlock.SessionID) {
				for i := range n {
					wait(l, s, fmt.Sprint(i))
				}
			},
			again:  func(l *load, s interlock.SessionID) engine.Command { return &engine.Detach{Head: l.head(s)} },
			leases: 10, waits: n,
		},
		{
			name: "watch for near misses",
			setUp: func(l *load, s interlock.SessionID) {
				for i := range n {
					l.acquire(s, "", time.Hour, fmt.Sprint("k", i))
				}
			},
			again: func(l *load, s interlock.SessionID) engine.Command {
				return &engine.Configure{Head: l.head(s), Settings: interlock.Settings{NearMisses: true}}
			},
			leases: n,
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			l := newLoad(t)
			other, s := l.open(interlock.MaxTTL), l.open(interlock.MaxTTL)
			if x.leases == 10 {
				for i := range 10 {
					l.acquire(other, "", time.Hour, fmt.Sprint("hot-", i))
				}
			}
			x.setUp(l, s)
			l.step(x.again(l, s))
			if _, steps := l.settleBounded(); steps < 2 {
				t.Errorf("%d steps were left", steps)
			}
			c := l.e.Counts()
			if c.Leases != x.leases || c.Waiters != x.waits {
				t.Errorf("%d leases and %d waiters are left, want %d and %d", c.Leases, c.Waiters, x.leases, x.waits)
			}
		})
	}
}

// TestPartedWaitIsOffered ends a connection with very many attached waits. A wait that the
// engine has not come to yet counts as unattended: its grant is an offer. One that is attached
// again over the same connection counts as attended.
func TestPartedWaitIsOffered(t *testing.T) {
	const n = engine.StepObjects + 500
	l := newLoad(t)
	holder, s := l.open(interlock.MaxTTL), l.open(interlock.MaxTTL)
	for i := range 10 {
		l.acquire(holder, "", time.Hour, fmt.Sprint("hot-", i))
	}
	for _, key := range []string{"first", "second"} {
		l.acquire(holder, key, time.Hour, key)
	}
	for i := range n {
		l.acquire(s, fmt.Sprint(i), time.Hour, fmt.Sprint("hot-", i%10))
	}
	var tickets []interlock.TicketID
	for _, key := range []string{"first", "second"} {
		for i := range 2000 { // wherever a step has come to
			lease, _ := l.acquire(s, fmt.Sprint(key, i), time.Hour, fmt.Sprint(key, "/", i))
			tickets = append(tickets, interlock.TicketID(lease))
		}
	}
	l.step(&engine.Detach{Head: l.head(s)})
	view, err := l.e.Key("default", "first")
	if err != nil || len(view.Holders) != 1 {
		t.Fatal(view, err)
	}
	l.step(&engine.Revoke{Head: l.head(holder), Key: "first", Fence: view.Holders[0].Fence})
	for i := range l.out.Effects {
		if eff := &l.out.Effects[i]; eff.Outcome == engine.Granted && eff.To != nil {
			t.Fatalf("a grant is told to %v, who has left", eff.To)
		}
	}
	if eff := l.step(&engine.Poll{Head: l.head(s), Ticket: tickets[3999], Attach: true}); eff.Outcome != engine.Queued {
		t.Fatal(eff.Outcome)
	}
	if n := l.e.Objects(); n > 3*engine.StepObjects {
		t.Errorf("the step that attaches a wait again looks at %d objects", n)
	}
	l.pass(0)
	view, err = l.e.Key("default", "second")
	if err != nil || len(view.Holders) != 1 {
		t.Fatal(view, err)
	}
	granted := 0
	l.step(&engine.Revoke{Head: l.head(holder), Key: "second", Fence: view.Holders[0].Fence})
	for {
		for i := range l.out.Effects {
			if eff := &l.out.Effects[i]; eff.Outcome == engine.Granted && eff.To != nil {
				granted++
			}
		}
		if !l.e.IsUnfinished() {
			break
		}
		l.step(&engine.Tick{Head: engine.Head{At: l.now}})
	}
	if granted != 1 {
		t.Errorf("%d are told of their grants, want the one that is attached", granted)
	}
}

// TestRevokeAmongMany: a lease is found by its fence at once, however many hold its key.
func TestRevokeAmongMany(t *testing.T) {
	const n = 2*engine.StepObjects + 500
	l := newLoad(t)
	s := l.open(interlock.MaxTTL)
	shared := []interlock.Claim{{Key: "all", Mode: interlock.Shared}}
	leases := make([]interlock.Lease, n)
	for i := range leases {
		eff := l.step(&engine.Acquire{Head: l.head(s), ID: l.id(), LeaseRequest: interlock.LeaseRequest{
			Flow: fmt.Sprint(i), Terms: interlock.Terms{TTL: time.Hour}, Claims: shared,
		}})
		if eff.Outcome != engine.Granted {
			t.Fatal(prose.Sentence(eff.Message))
		}
		leases[i] = eff.Lease
	}
	check := func() {
		t.Helper()
		if err := l.e.CheckHolders(); err != nil {
			t.Error(err)
		}
		if n := l.e.Objects(); n > fewObjects {
			t.Errorf("%d objects", n)
		}
	}
	if eff := l.step(&engine.Convert{
		Head: l.head(s), Lease: leases[n-1].ID, Claims: append(shared, interlock.Claim{Key: "other"}),
	}); eff.Outcome != engine.Granted {
		t.Fatal(prose.Sentence(eff.Message))
	} else if eff.Lease.Fence == leases[n-1].Fence {
		t.Fatal("the lease has its old fence")
	} else {
		leases[n-1] = eff.Lease
	}
	l.restart()
	l.pass(0)
	order := []int{n - 1, n - 2, n / 2, 0}
	for i := 1; i < n/2; i++ {
		order = append(order, i)
	}
	for i := n/2 + 1; i < n-2; i++ {
		order = append(order, i)
	}
	for _, i := range order {
		c := &engine.Revoke{Head: l.head(s), Key: "all", Fence: leases[i].Fence}
		if eff := l.step(c); eff.Outcome != engine.Done {
			t.Fatal(prose.Sentence(eff.Message))
		}
		check()
	}
	if c := l.e.Counts(); c.Leases != 0 {
		t.Errorf("%d leases are left", c.Leases)
	}
}

// TestManyPullsEnd ends the pulls of very many idle workers by one command. Each worker is
// notified once, over several steps, and gets nothing meanwhile.
func TestManyPullsEnd(t *testing.T) {
	const n = 2*engine.StepObjects + 500
	queue := interlock.TaskQueue{Name: "q"}
	narrow := queue
	narrow.Pull = []string{"trusted"}
	anybody := &interlock.Principal{Name: "anybody"}
	for _, x := range []struct {
		name    string
		alone   bool // the workers have no session
		command func(*load, interlock.SessionID) engine.Command
		code    interlock.Code
		workers int
	}{
		{
			name: "drop the queue", alone: true, code: interlock.CodeUnknownQueue, workers: n,
			command: func(l *load, s interlock.SessionID) engine.Command {
				return &engine.DropQueue{Head: l.head(s), Name: "q"}
			},
		},
		{
			name: "take the right to pull", alone: true, code: interlock.CodeForbidden, workers: n,
			command: func(l *load, s interlock.SessionID) engine.Command {
				return &engine.SetQueue{Head: l.head(s), Queue: narrow}
			},
		},
		{
			name: "close the session", code: interlock.CodeSessionEnded, workers: interlock.MaxPulls,
			command: func(l *load, s interlock.SessionID) engine.Command { return &engine.CloseSession{Head: l.head(s)} },
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			l := newLoad(t)
			s, other := l.open(interlock.MaxTTL), l.open(interlock.MaxTTL)
			l.step(&engine.SetQueue{Head: l.head(s), Queue: queue})
			for i := range x.workers {
				c := &engine.Pull{Head: l.head(s), ID: l.id(), Leases: [][16]byte{l.id()}, Queue: "q", Max: 1, Attach: true}
				if c.From, c.Principal = i, anybody; x.alone {
					c.Session = interlock.SessionID{}
				}
				l.step(c)
			}
			if x.code == interlock.CodeSessionEnded {
				for i := range interlock.MaxFollows {
					id := interlock.TaskID(l.id())
					l.step(&engine.Submit{Head: l.head(other), Task: engine.TaskSpec{ID: id, TaskSpec: interlock.TaskSpec{
						Queue: "q", Delay: time.Hour,
					}}})
					c := &engine.FollowTask{Head: l.head(s), Task: id, Attach: true}
					c.From = x.workers + i
					l.step(c)
				}
			}
			l.step(x.command(l, s))
			l.bounded()
			told := slices.Clone(l.out.Effects)
			if !l.e.IsUnfinished() {
				t.Error("one step told all of them")
			}
			l.step(&engine.SetQueue{Head: l.head(other), Queue: queue})
			told = append(told, l.out.Effects...)
			l.step(&engine.Submit{
				Head: l.head(other), Task: engine.TaskSpec{ID: l.id(), TaskSpec: interlock.TaskSpec{Queue: "q"}},
			})
			rest, _ := l.settleBounded()
			known := map[int]bool{}
			for _, eff := range append(told, rest...) {
				i, ok := eff.To.(int)
				if !ok {
					continue
				}
				if eff.Outcome != engine.Refused || eff.Code != x.code || known[i] {
					t.Fatalf("worker %d: %v %s %s", i, eff.Outcome, eff.Code, prose.Sentence(eff.Message))
				}
				known[i] = true
			}
			want := x.workers
			if !x.alone {
				want += interlock.MaxFollows
			}
			if len(known) != want {
				t.Errorf("%d of %d are told", len(known), want)
			}
			c := &engine.Pull{Head: l.head(other), ID: l.id(), Leases: [][16]byte{l.id()}, Queue: "q", Max: 1}
			c.Principal = anybody
			if eff := l.step(c); eff.Outcome != engine.Granted {
				t.Errorf("the task that was submitted meanwhile: %v %s", eff.Outcome, prose.Sentence(eff.Message))
			}
		})
	}
}

// TestQueueOfManyGroups: a queue is changed without a look at the groups that have no share.
func TestQueueOfManyGroups(t *testing.T) {
	l := newLoad(t)
	s := l.open(interlock.MaxTTL)
	queue := interlock.TaskQueue{Name: "q", Groups: []interlock.Share{{Group: "0", Max: 1}, {Group: "1", Weight: 3}}}
	l.step(&engine.SetQueue{Head: l.head(s), Queue: queue})
	for i := range 2*engine.StepObjects + 500 {
		l.step(&engine.Submit{Head: l.head(s), Task: engine.TaskSpec{ID: l.id(), TaskSpec: interlock.TaskSpec{
			Queue: "q", Group: fmt.Sprint(i),
		}}})
	}
	queue.Groups = []interlock.Share{{Group: "0", Weight: 2}}
	if eff := l.step(&engine.SetQueue{Head: l.head(s), Queue: queue}); eff.Outcome != engine.Done {
		t.Fatal(prose.Sentence(eff.Message))
	}
	if n := l.e.Objects(); n > fewObjects {
		t.Errorf("%d objects", n)
	}
}

// TestDeletionIsBounded deletes a namespace with more in it than a step may look at. The answer
// lists its contents, and as many listeners as possible are notified.
func TestDeletionIsBounded(t *testing.T) {
	const n = 2*engine.StepObjects + 500
	l := newLoad(t)
	s := l.open(interlock.MaxTTL)
	var nobody interlock.SessionID
	l.step(&engine.SetQueue{Head: l.head(s), Queue: interlock.TaskQueue{Name: "idle"}})
	l.step(&engine.SetQueue{Head: l.head(s), Queue: interlock.TaskQueue{Name: "q"}})
	for i := range n {
		l.acquire(nobody, "", time.Hour, fmt.Sprint("k", i))
		l.step(&engine.Submit{Head: l.head(s), Task: engine.TaskSpec{ID: l.id(), TaskSpec: interlock.TaskSpec{Queue: "q"}}})
		l.step(&engine.Pull{
			Head: l.head(nobody), ID: l.id(), Queue: "idle", Max: 1, Leases: [][16]byte{l.id()}, Attach: true,
		})
	}
	eff := l.step(&engine.DeleteNamespace{Head: l.head(nobody)})
	l.bounded()
	want := fmt.Sprintf(`namespace "default" still has 1 session, %d leases, %d unfinished tasks and 2 queues`, n, n)
	if eff.Code != interlock.CodeNamespaceInUse || prose.Sentence(eff.Message) != want {
		t.Errorf("%s: %s; want %s", eff.Code, prose.Sentence(eff.Message), want)
	}
	l.step(&engine.DeleteNamespace{Head: l.head(nobody), Force: true})
	l.bounded()
	told := 0
	for i := range l.out.Effects {
		if l.out.Effects[i].Code == interlock.CodeRevoked {
			told++
		}
	}
	if told == 0 || told > engine.StepObjects {
		t.Errorf("%d are told", told)
	}
	if c := l.e.Counts(); c != (engine.Counts{}) {
		t.Errorf("%+v is left", c)
	}
}
