package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/interlockdev/interlock"
)

const (
	// perTrunk is how many sessions a stream carries at most; the server's limit is 1,024.
	perTrunk = 1000
	// leastTrunks is over how many namespaces sessions are spread, so that each shard has some.
	leastTrunks = 100
)

// swarm is sessions in many namespaces. It holds many leases with few connections, as gateways of agents do.
type swarm struct {
	fleet  *fleet
	trunks []*trunk // one for each namespace

	beats   atomic.Int64 // answered heartbeats
	lost    atomic.Int64 // leases that verify missed
	running sync.WaitGroup
}

// member is a session, and the leases that it holds.
type member struct {
	slot   uint32
	id     interlock.SessionID // zero before it is open
	gone   bool                // the server has ended it
	seq    uint64              // of its last operation; earlier ones are answered
	first  int                 // the number of its first lease, for its key
	leases []grip
	want   int // leases
}

// grip is a lease that was granted.
type grip struct {
	id    interlock.LeaseID
	fence interlock.Fence
}

// newSwarm shares sessions and leases out evenly.
func newSwarm(f *fleet, sessions, leases int) *swarm {
	w := &swarm{fleet: f}
	first, begun := 0, 0
	n := min(sessions, max(leastTrunks, (sessions+perTrunk-1)/perTrunk))
	for number := range n {
		t := &trunk{
			swarm: w, number: number, members: make([]member, portion(sessions, n, number)), jobs: make(chan job), server: number,
		}
		for i := range t.members {
			m := &t.members[i]
			m.slot, m.first, m.want = uint32(i+1), first, portion(leases, sessions, begun)
			first, begun = first+m.want, begun+1
		}
		w.trunks = append(w.trunks, t)
	}
	return w
}

// portion is the i-th of n nearly equal parts of a total.
func portion(total, n, i int) int { return total*(i+1)/n - total*i/n }

// start lets all streams work until ctx ends. When one fails, so do all.
func (w *swarm) start(ctx context.Context, fail context.CancelCauseFunc) {
	for _, t := range w.trunks {
		w.running.Go(func() {
			if err := t.run(ctx); err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("stream %d: %w", t.number, err))
			}
		})
	}
}

// all lets each stream do something, and returns when all have done it. Heartbeats go on meanwhile.
func (w *swarm) all(ctx context.Context, do func(*trunk, context.Context) error) error {
	return each(ctx, len(w.trunks), len(w.trunks), func(ctx context.Context, i int) error {
		return w.trunks[i].work(ctx, do)
	})
}

// pace chooses how heartbeats are sent from now on.
func (w *swarm) pace(ctx context.Context, single bool) error {
	return w.all(ctx, func(t *trunk, _ context.Context) error {
		t.pace(single)
		return nil
	})
}

// verify reads every lease and returns how many are not held any more with their fences.
func (w *swarm) verify(ctx context.Context) (int, error) {
	w.lost.Store(0)
	err := w.all(ctx, (*trunk).verify)
	return int(w.lost.Load()), err
}
