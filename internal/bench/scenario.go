package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Scenario is a workload.
type Scenario struct {
	Name  string
	Short string // what it measures, in a line
	About string // what it does and how it measures, for people

	// Transports are the default APIs of Interlock that it uses.
	Transports []Transport

	// Yardstick reports that Echo is among its targets.
	Yardstick bool

	// Own reports that it needs a server of its own, to stop it or to set rules.
	Own bool

	// Engine reports that its servers can have a journal in an engine, without one in a directory beside it.
	Engine bool

	// Tall reports that it has so many figures that they are printed one below the other.
	Tall bool

	cases func(cfg Config, targets []Target) ([]Case, error)
}

// Scenarios are all of them, in the order in which they are run and printed.
var Scenarios = []Scenario{
	floorScenario, cycleScenario, handoffScenario, commitScenario, taskScenario, askScenario, keepaliveScenario,
	memoryScenario, growthScenario, viewersScenario, restartScenario, scaleScenario, replayScenario, mergeScenario,
}

// Short names those that run when none is named.
var Short = []string{"floor", "cycle", "handoff"}

// Named returns the scenarios of these names, each once and in the order of Scenarios.
func Named(names []string) ([]Scenario, error) {
	var known []string
	for _, s := range Scenarios {
		known = append(known, s.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no scenario is called %q: want some of %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(
		slices.Clone(Scenarios), func(s Scenario) bool { return !slices.Contains(names, s.Name) },
	), nil
}

// Config is the amount of load. A value that is 0 or empty is the scenario's own.
type Config struct {
	// Agents are how many work at a time, one load after the other.
	Agents []int

	// Leases are how many are held in scenarios about many of them.
	Leases []int

	// Sessions are how many hold the leases of scale, and Servers how many share its journal in an engine, which has
	// so many Shards if it is new.
	Sessions, Servers, Shards int

	// Viewers are how many follow the overview in viewers.
	Viewers int

	// Duration is how long one run takes, without what comes before and after.
	Duration time.Duration

	// Repeat is how many runs each case has.
	Repeat int

	// Replay is how the recorded hour is replayed.
	Replay Replay

	// Merge is the load of the merge queue.
	Merge Merge

	// Progress, if set, is called with what is done next.
	Progress func(text string)
}

// Check refuses loads that are none.
func (cfg Config) Check() error {
	for _, n := range slices.Concat(cfg.Agents, cfg.Leases) {
		if n < 1 {
			return fmt.Errorf("%d agents or leases: want at least one", n)
		}
	}
	if cfg.Sessions < 0 || cfg.Servers < 0 || cfg.Shards < 0 || cfg.Viewers < 0 {
		return fmt.Errorf(
			"%d sessions, %d servers, %d shards and %d viewers: want at least one of each", cfg.Sessions, cfg.Servers,
			cfg.Shards, cfg.Viewers,
		)
	}
	if cfg.Duration < 0 {
		return fmt.Errorf("a duration of %v: want one above zero", cfg.Duration)
	}
	if cfg.Repeat < 0 {
		return fmt.Errorf("%d runs: want at least one", cfg.Repeat)
	}
	if r := cfg.Replay; r.Speed < 0 || r.Entities < 0 || r.Skew < 0 {
		return fmt.Errorf(
			"a speed of %g, %d entities and a skew of %g: none of them can be negative", r.Speed, r.Entities, r.Skew,
		)
	}
	return nil
}

func (cfg Config) agents(own ...int) []int {
	if len(cfg.Agents) > 0 {
		return cfg.Agents
	}
	return own
}

func (cfg Config) leases(own ...int) []int {
	if len(cfg.Leases) > 0 {
		return cfg.Leases
	}
	return own
}

func (cfg Config) duration(own time.Duration) time.Duration {
	if cfg.Duration > 0 {
		return cfg.Duration
	}
	return own
}

// A Case is one load on one target.
type Case struct {
	Scenario string
	Load     string // such as "64 agents"
	Target   string
	Repeat   int    // how many runs, by default
	Against  string // the target that each run is compared with, of the same load; "" is none

	run func(ctx context.Context) ([]Value, error)
}

// on makes a case that has a site of its own for every run.
func on(target Target, load string, repeat int, run func(ctx context.Context, site Site) ([]Value, error)) Case {
	return Case{Load: load, Target: target.Name(), Repeat: repeat, run: func(ctx context.Context) (values []Value, err error) {
		site, err := target.Open(ctx)
		if err != nil {
			return nil, err
		}
		defer func() {
			if closed := site.Close(); err == nil {
				err = closed
			}
		}()
		return run(ctx, site)
	}}
}

// Check reports whether Run could begin.
func (s Scenario) Check(cfg Config, targets []Target) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	_, err := s.cases(cfg, targets)
	return err
}

// Run runs a scenario against targets and returns its figures, in the order of its cases. The
// runs of cases with the same load alternate. With an error it returns the figures of the loads
// that were complete.
func (s Scenario) Run(ctx context.Context, cfg Config, targets []Target) ([]Figure, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cases, err := s.cases(cfg, targets)
	if err != nil {
		return nil, err
	}
	var figures []Figure
	for len(cases) > 0 {
		n := 1
		for n < len(cases) && cases[n].Load == cases[0].Load {
			n++
		}
		group, err := alternate(ctx, cfg, s.Name, cases[:n])
		if err != nil {
			return figures, err
		}
		figures, cases = append(figures, group...), cases[n:]
	}
	return figures, nil
}

// alternate runs each of the cases once, then each once more.
func alternate(ctx context.Context, cfg Config, scenario string, cases []Case) ([]Figure, error) {
	runs := make([][][]Value, len(cases))
	repeat := cases[0].Repeat
	if cfg.Repeat > 0 {
		repeat = cfg.Repeat
	}
	for r := range repeat {
		for i := range cases {
			c := &cases[i]
			c.Scenario = scenario
			if cfg.Progress != nil {
				cfg.Progress(fmt.Sprintf("%s: %s, %s, run %d of %d", scenario, c.Load, c.Target, r+1, repeat))
			}
			values, err := c.run(ctx)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %s, %s: %w", scenario, c.Load, c.Target, err)
			}
			runs[i] = append(runs[i], values)
		}
	}
	compare(cases, runs)
	var figures []Figure
	for i, c := range cases {
		figures = append(figures, summarize(c, runs[i])...)
	}
	return figures, nil
}

// compare adds to each run of a case with Against the ratio of its first value to that of the run beside it.
func compare(cases []Case, runs [][][]Value) {
	for i, c := range cases {
		beside := slices.IndexFunc(cases, func(o Case) bool { return o.Target == c.Against })
		if c.Against == "" || beside < 0 {
			continue
		}
		for r := range runs[i] {
			runs[i][r] = append(runs[i][r], Value{"ratio", Index, runs[i][r][0].V / runs[beside][r][0].V})
		}
	}
}
