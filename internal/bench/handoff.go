package bench

import (
	"context"
	"errors"
	"sync"
	"time"
)

var handoffScenario = Scenario{
	Name:  "handoff",
	Short: "one key that goes from hand to hand",
	About: "All agents want one key, hold it for no time and ask again at once. A hand-off takes from when the holder " +
		"begins to release " +
		"(or, if that is later, the next one to ask) until the next one, somebody else, knows that it holds. A grant " +
		"overtakes when another agent was known " +
		"to stand in line before the one who was granted had asked. Fairness is Jain's index of the grants to each agent, " +
		"over whole rounds " +
		"from when all stand in line, or over what there was ten seconds after the time was up.",
	Transports: []Transport{Stream},
	cases: func(cfg Config, targets []Target) (cases []Case, err error) {
		for _, n := range cfg.agents(2, 10, 100, 1000) {
			for _, t := range targets {
				cases = append(cases, on(t, headcount(n), 3, func(ctx context.Context, site Site) ([]Value, error) {
					return handoffs(ctx, site, n, cfg.duration(time.Second))
				}))
			}
		}
		return cases, nil
	},
}

func handoffs(ctx context.Context, site Site, n int, d time.Duration) ([]Value, error) {
	crew, err := site.Crew(ctx, n)
	if err != nil {
		return nil, err
	}
	defer crew.Close()
	before, err := site.Usage(ctx)
	if err != nil {
		return nil, err
	}
	own := ownCPU()
	r := newRelay(n, d)
	running, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	r.cut = cut
	opening, err := crew.Agents[0].Acquire(ctx, relayKey, nil)
	if err != nil {
		return nil, err
	}
	err = each(running, n, n, func(ctx context.Context, i int) error {
		if i == 0 {
			return r.open(ctx, crew.Agents[i], opening)
		}
		return r.run(ctx, crew.Agents[i], i)
	})
	if err != nil && !errors.Is(err, errCutShort) {
		return nil, err
	}
	own = ownCPU() - own
	after, err := site.Usage(ctx)
	if err != nil {
		return nil, err
	}
	return []Value{
		rate("owner changes", r.took.Count(), r.elapsed),
		micro("p50", r.took.Quantile(.5)), micro("p99", r.took.Quantile(.99)), micro("max", r.took.Most()),
		share("overtaking", float64(r.overtook), float64(r.counted)),
		{"Jain", Index, jain(r.grants)},
		micro("server CPU", (after.CPU-before.CPU)/time.Duration(r.all)),
		micro("agents' CPU", own/time.Duration(r.all)),
	}, nil
}

// roundLimit is how much longer than its duration a relay may take to end with a whole round.
// Then it ends at once: polling agents can take minutes for a round of many.
const roundLimit = 10 * time.Second

var errCutShort = errors.New("the relay took too long")

// relayKey is the key that all want.
const relayKey = "bench:relay"

// relay is a key that goes from hand to hand, as its agents see it. Its mutex stands for
// nothing but the agents' common memory: an agent that holds it need not hold the key.
type relay struct {
	n        int
	duration time.Duration
	gathered chan struct{} // is closed when all but the first agent stand in line
	cut      func(error)   // calls off the waiting agents

	mu       sync.Mutex
	missing  int       // agents that have yet to come into the line before it begins
	clock    uint64    // counts what agents ask and learn, in the order in which they do
	waiting  []uint64  // when each agent was last known to have come into the line; 0: it is not there
	released time.Time // when the last holder began to release
	all      int       // grants, also those after the end

	began    time.Time
	counted  int
	overtook int
	grants   []int     // by agent
	last     int       // the agent that held before
	took     Histogram // from one holder to another
	elapsed  time.Duration
	over     bool
}

func newRelay(n int, d time.Duration) *relay {
	r := &relay{
		n: n, duration: d, gathered: make(chan struct{}), missing: n - 1,
		waiting: make([]uint64, n), grants: make([]int, n),
	}
	if r.missing == 0 {
		close(r.gathered)
	}
	return r
}

// open runs the first agent, which holds the key already: it waits for the others, and then is
// one of them.
func (r *relay) open(ctx context.Context, a Agent, lock Lock) error {
	select {
	case <-r.gathered:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r.mu.Lock()
	r.began = time.Now()
	r.mu.Unlock()
	r.release()
	if err := lock.Release(ctx); err != nil {
		return err
	}
	return r.run(ctx, a, 0)
}

// run asks for the key and releases it until it is over.
func (r *relay) run(ctx context.Context, a Agent, i int) error {
	queued := func() { r.queued(i) }
	for {
		asked, at, over := r.ask()
		if over {
			return nil
		}
		lock, err := a.Acquire(ctx, relayKey, queued)
		if err != nil {
			return err
		}
		r.granted(i, asked, at, time.Now())
		r.release()
		if err := lock.Release(ctx); err != nil {
			return err
		}
	}
}

func (r *relay) ask() (asked uint64, at time.Time, over bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock++
	return r.clock, time.Now(), r.over
}

func (r *relay) queued(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock++
	r.waiting[i] = r.clock
	if r.missing > 0 {
		if r.missing--; r.missing == 0 {
			close(r.gathered)
		}
	}
}

// granted counts a grant to agent i, which asked at a moment of the clock.
func (r *relay) granted(i int, asked uint64, at, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[i] = 0
	r.all++
	if r.over {
		return
	}
	for _, since := range r.waiting {
		if since != 0 && since < asked {
			r.overtook++
			break
		}
	}
	if at.After(r.released) {
		r.released = at
	}
	if i != r.last {
		r.took.Record(now.Sub(r.released))
	}
	r.last = i
	r.counted++
	r.grants[i]++
	switch r.elapsed = now.Sub(r.began); {
	case r.elapsed >= r.duration && r.counted%r.n == 0:
		r.over = true
	case r.elapsed >= r.duration+roundLimit:
		r.over = true
		r.cut(errCutShort)
	}
}

func (r *relay) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.released = time.Now()
}

// jain is Jain's index of fairness: 1 when all have the same, 1/n when one has all.
func jain(shares []int) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += float64(s)
		squares += float64(s) * float64(s)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}
