package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock/internal/trace"
)

// Replay is how recorded requests to a model are replayed. Each becomes an agent that comes
// when the request came, thinks about one entity for as long as the request took, and writes.
type Replay struct {
	// Trace is "conversation" or "code", which are hours that this program carries, or the
	// name of a file of the same form. "" is conversation.
	Trace string

	// Speed divides all times of the agents: when they come, how long they think, how long
	// they pause before they try again. 0 is 20.
	Speed float64

	// Entities is how many they share; 0 is 1000.
	Entities int

	// Skew is how unevenly: 0 uniform, 1 Zipf's law.
	Skew float64
}

var replayScenario = Scenario{
	Name:  "replay",
	Short: "an hour of real model requests: leases, commits, polling",
	About: "Recorded requests to a model, each of them an agent that thinks about a shared entity for " + trace.Rates +
		" (assumed rates) and then is done. " +
		"They keep out of each other's way by leases in line; by commits on the version that they have read, thinking " +
		"again when it is stale; or by " +
		"trying again every 10 ms, or after a random pause of up to twice that. Times are as measured, so those of the " +
		"agents are divided by the speed; " +
		"waiting is from coming to the thought that counts. Data: " + trace.Source + ".",
	Transports: []Transport{Stream},
	cases: func(cfg Config, targets []Target) (cases []Case, err error) {
		r := cfg.Replay
		if r.Speed == 0 {
			r.Speed = 20
		}
		if r.Entities == 0 {
			r.Entities = 1000
		}
		requests, err := trace.Named(r.Trace)
		if err != nil {
			return nil, err
		}
		visits := r.visits(requests, cfg.Duration)
		if len(visits) == 0 {
			return nil, errors.New("the trace has no requests")
		}
		load := fmt.Sprintf("%s requests at %gx, %s", Number(float64(len(visits))), r.Speed, shared(r.Entities, r.Skew))
		for _, t := range targets {
			for _, how := range strategies {
				c := on(t, load, 1, func(ctx context.Context, site Site) ([]Value, error) { return r.play(ctx, site, visits, how) })
				c.Target += ", " + how.name
				cases = append(cases, c)
			}
		}
		return cases, nil
	},
}

// A visit is one agent's: when it comes, to which entity, and how long it thinks.
type visit struct {
	at, think time.Duration
	entity    int
}

// visits are the requests of the trace that fall into d, in the time of the replay.
func (r Replay) visits(requests []trace.Request, d time.Duration) []visit {
	entities := newChoice(r.Entities, r.Skew, rand.New(rand.NewPCG(1, 2))) // the same for all
	var visits []visit
	for _, q := range requests {
		at := time.Duration(float64(q.At) / r.Speed)
		if d > 0 && at >= d {
			break
		}
		visits = append(visits, visit{at, time.Duration(float64(q.Think()) / r.Speed), entities.next()})
	}
	return visits
}

// A strategy is how an agent that thinks about an entity keeps others from it, or
// itself from writing over what they wrote.
type strategy struct {
	name  string
	visit func(ctx context.Context, p *play, a Agent, key string, think time.Duration) error
}

var strategies = []strategy{
	{"leases", locked(nil)},
	{"commits", optimistic},
	{"polling 10 ms", locked(func() time.Duration { return pollPause })},
	{"polling with jitter", locked(func() time.Duration { return rand.N(2 * pollPause) })},
}

// pollPause is the pause of a polling agent between two tries, or the average.
const pollPause = 10 * time.Millisecond

// A play is one replay under way.
type play struct {
	speed float64
	tries atomic.Int64

	mu        sync.Mutex // guards the fields below
	waits     Histogram  // from coming to the thought that counted
	holds     Histogram  // of that thought, and of the time that the key was held or the version was at risk
	conflicts int        // agents with a conflict
	lost      time.Duration
	thought   time.Duration
}

// done counts a visit.
func (p *play) done(waited, held time.Duration, conflict bool, lost, thought time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits.Record(waited)
	p.holds.Record(held)
	if conflict {
		p.conflicts++
	}
	p.lost += lost
	p.thought += thought
}

// locked holds the entity's key while the agent thinks. pauses, if not nil, has it poll.
func locked(pauses func() time.Duration) func(context.Context, *play, Agent, string, time.Duration) error {
	return func(ctx context.Context, p *play, a Agent, key string, think time.Duration) error {
		if pauses != nil {
			a = PollingAgent{
				Agent: a,
				Tried: func() { p.tries.Add(1) },
				Pause: func() time.Duration { return time.Duration(float64(pauses()) / p.speed) },
			}
		} else {
			p.tries.Add(1)
		}
		came, conflict := time.Now(), false
		lock, err := a.Acquire(ctx, key, func() { conflict = true })
		if err != nil {
			return err
		}
		held := time.Now()
		if err := pause(ctx, think); err != nil {
			return err
		}
		if err := lock.Release(ctx); err != nil {
			return err
		}
		p.done(held.Sub(came), time.Since(held), conflict, 0, think)
		return nil
	}
}

// optimistic thinks on what was read, and thinks again when another agent was faster.
func optimistic(ctx context.Context, p *play, a Agent, key string, think time.Duration) error {
	store, ok := a.(Store)
	if !ok {
		return fmt.Errorf("it has no documents with versions, or they are not measured there: use --transport %s", Stream)
	}
	came, lost := time.Now(), time.Duration(0)
	for {
		p.tries.Add(1)
		began := time.Now()
		version, err := store.Read(ctx, key)
		if err != nil {
			return err
		}
		if err := pause(ctx, think); err != nil {
			return err
		}
		_, err = store.Commit(ctx, key, version)
		if err == nil {
			p.done(began.Sub(came), time.Since(began), lost > 0, lost, lost+think)
			return nil
		}
		if !errors.Is(err, ErrStale) {
			return err
		}
		lost += think
	}
}

// play replays visits and returns how the agents fared.
func (r Replay) play(ctx context.Context, site Site, visits []visit, how strategy) ([]Value, error) {
	crew, err := site.Crew(ctx, len(visits))
	if err != nil {
		return nil, err
	}
	defer crew.Close()
	before, err := site.Usage(ctx)
	if err != nil {
		return nil, err
	}
	var (
		p     = &play{speed: r.Speed}
		keys  = keyed("bench-entity:", r.Entities)
		began = time.Now()
		all   sync.WaitGroup
	)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for i, v := range visits {
		if pause(ctx, v.at-time.Since(began)) != nil {
			break // the cause is the result
		}
		all.Go(func() {
			if err := how.visit(ctx, p, crew.Agents[i], keys[v.entity], v.think); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	elapsed := time.Since(began)
	after, err := site.Usage(ctx)
	if err != nil {
		return nil, err
	}
	n := float64(len(visits))
	return []Value{
		share("conflicts", float64(p.conflicts), n),
		milli("wait p50", p.waits.Quantile(.5)), milli("wait p99", p.waits.Quantile(.99)), milli("wait max", p.waits.Most()),
		milli("hold p50", p.holds.Quantile(.5)), milli("hold p99", p.holds.Quantile(.99)),
		share("thinking lost", p.lost.Seconds(), p.thought.Seconds()),
		{"tries each", Plain, float64(p.tries.Load()) / n},
		share("server CPU", (after.CPU - before.CPU).Seconds(), elapsed.Seconds()),
		{"took", Seconds, elapsed.Seconds()},
	}, nil
}
