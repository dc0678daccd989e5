package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

var growthScenario = Scenario{
	Name:  "growth",
	Short: "what a cycle costs beside ever more held keys",
	About: "Agents acquire and release a key of their own beside many that are held: first beside as many as the " +
		"smallest load has, then on the same " +
		"server beside all. The ratios are of these two, so 1 means that what is held costs nothing. The engine's time is " +
		"that of the engine alone, " +
		"in the bench's process, on one core and with the same keys; its share is of the server's processor time.",
	Transports: []Transport{Stream},
	cases: func(cfg Config, targets []Target) (cases []Case, err error) {
		sizes := cfg.leases(1_000, 10_000, 100_000, 1_000_000)
		least := slices.Min(sizes)
		for _, agents := range cfg.agents(64) {
			if least <= agents {
				return nil, fmt.Errorf("%d leases beside %s: want more leases than agents", least, headcount(agents))
			}
			for _, n := range sizes {
				g := growth{agents: agents, least: least, most: n, duration: cfg.duration(2 * time.Second)}
				for _, t := range targets {
					cases = append(cases, on(t, Number(float64(n))+" keys, "+headcount(agents), 3, g.run))
				}
			}
		}
		return cases, nil
	},
}

// growth is cycles beside few held keys and then beside many. The limit of a namespace is
// on all leases together, so those of the agents are counted in.
type growth struct {
	agents      int
	least, most int
	duration    time.Duration
}

// cost is the cost of one cycle.
type cost struct {
	cycles  int
	elapsed time.Duration // of all
	took    *Histogram
	cpu     time.Duration // of the server, for each
}

func (g growth) run(ctx context.Context, site Site) ([]Value, error) {
	few, many := g.least-g.agents, g.most-g.agents
	crew, err := site.Crew(ctx, g.agents+min(many, holdWidth))
	if err != nil {
		return nil, err
	}
	defer crew.Close()
	agents, holders := crew.Agents[:g.agents], crew.Agents[g.agents:]
	keys := keyed("bench:held:", many)
	first, err := hold(ctx, holders, keys[:few])
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(first)
	before, err := g.measure(ctx, site, agents)
	if err != nil {
		return nil, err
	}
	rest, err := hold(ctx, holders, keys[few:])
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(rest)
	after, err := g.measure(ctx, site, agents)
	if err != nil {
		return nil, err
	}
	alone, err := g.engine(keys, few)
	if err != nil {
		return nil, err
	}
	return []Value{
		rate("cycles", after.cycles, after.elapsed), micro("p50", after.took.Quantile(.5)), micro("server CPU", after.cpu),
		over("time ÷ least", after.elapsed.Seconds()/float64(after.cycles), before.elapsed.Seconds()/float64(before.cycles)),
		over("CPU ÷ least", after.cpu.Seconds(), before.cpu.Seconds()),
		micro("engine", alone.many), over("engine ÷ least", alone.many.Seconds(), alone.few.Seconds()),
		share("engine's share", alone.many.Seconds(), after.cpu.Seconds()),
	}, nil
}

// over is a ratio; 0 to nothing.
func over(name string, part, whole float64) Value {
	v := share(name, part, whole)
	return Value{v.Name, Plain, v.V / 100}
}

// measure has the agents cycle when the server has nothing else to do any more.
func (g growth) measure(ctx context.Context, site Site, agents []Agent) (c cost, err error) {
	keys := keyed("bench:", len(agents))
	runtime.GC() // what holding has left here is not the server's doing
	before, err := calm(ctx, site)
	if err != nil {
		return c, err
	}
	c.took, c.elapsed, err = drive(
		ctx, len(agents), g.duration, func(ctx context.Context, i int) error { return cycle(ctx, agents[i], keys[i]) },
	)
	if err != nil {
		return c, err
	}
	after, err := site.Usage(ctx)
	c.cycles = c.took.Count()
	// Each agent's first cycle is not counted, but has cost the server something, too.
	c.cpu = (after.CPU - before.CPU) / time.Duration(c.cycles+len(agents))
	return c, err
}

// A server is calm when it takes at most a tenth of a core, as long as it is looked at: it
// collects no garbage then and writes no snapshot.
const (
	look     = 200 * time.Millisecond
	patience = time.Minute
)

// calm waits until the server is calm, but not for ever, and returns what it has used.
func calm(ctx context.Context, site Site) (Usage, error) {
	before, err := site.Usage(ctx)
	for began := time.Now(); err == nil && time.Since(began) < patience; {
		if err = pause(ctx, look); err != nil {
			break
		}
		var now Usage
		if now, err = site.Usage(ctx); now.CPU-before.CPU <= look/10 {
			return now, err
		}
		before = now
	}
	return before, err
}
