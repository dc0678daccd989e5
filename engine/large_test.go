package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// fewObjects is how many objects a command on one lease may look at.
const fewObjects = 50

// TestLargeSetsTakeSteps has one command be about more objects than one step may look at:
// it is answered at once, steps that are due at once do the rest, and none looks at more.
func TestLargeSetsTakeSteps(t *testing.T) {
	const n = 2*engine.StepObjects + 500
	wait := func(l *load, s interlock.SessionID, flow string) {
		l.step(&engine.Acquire{
			Head: l.head(s), ID: l.id(), Flow: flow, OnConflict: interlock.Wait, Attach: true,
			Claims: []interlock.Claim{{Key: interlock.Key("hot-" + flow[len(flow)-1:]), Mode: interlock.Exclusive}},
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
			if steps := l.pass(0); steps < 2 {
				t.Errorf("%d steps were left", steps)
			}
			c := l.e.Counts()
			if c.Leases != x.leases || c.Waiters != x.waits {
				t.Errorf("%d leases and %d waiters are left, want %d and %d", c.Leases, c.Waiters, x.leases, x.waits)
			}
		})
	}
}

// TestPartedWaitIsOffered has a connection end over which very many waits were attached. One
// that nobody has come to yet counts as unattended: its grant is an offer. Another one that
// is attached again over the same connection counts as attended.
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
		eff := l.step(&engine.Acquire{Head: l.head(s), ID: l.id(), Flow: fmt.Sprint(i), TTL: time.Hour, Claims: shared})
		if eff.Outcome != engine.Granted {
			t.Fatal(eff.Message)
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
	if eff := l.step(&engine.Convert{Head: l.head(s), Lease: leases[n-1].ID, Claims: append(shared, interlock.Claim{Key: "other"})}); eff.Outcome != engine.Granted {
		t.Fatal(eff.Message)
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
			t.Fatal(eff.Message)
		}
		check()
	}
	if c := l.e.Counts(); c.Leases != 0 {
		t.Errorf("%d leases are left", c.Leases)
	}
}
