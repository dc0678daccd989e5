package main

import (
	"slices"

	"github.com/interlockdev/interlock/internal/bench"
)

// plan is how a scenario is run beside peers.
type plan struct {
	scenario   string
	transports []bench.Transport // of Interlock: what is compared is not chosen anew for each peer
	agents     []int             // the loads, unless the command line names others
	leases     []int             // the same, where the load is leases
}

// plans are the scenarios in which peers take part, in their order. All of them take
// about twenty minutes.
var plans = []plan{
	{"cycle", []bench.Transport{bench.Stream, bench.Connections}, []int{1, 16, 64, 256}, nil},
	{"handoff", []bench.Transport{bench.Stream, bench.Connections}, []int{2, 10, 100, 1000}, nil},
	{"keepalive", []bench.Transport{bench.Connections}, nil, []int{10_000, 100_000}},
	{"memory", []bench.Transport{bench.Stream}, nil, []int{100_000}}, // the slowest take minutes for a million
}

// load is one load of a plan.
type load struct {
	cfg    bench.Config
	agents int // 0: the scenario's own
}

// loads are those of a plan as the command line will have them.
func (p *plan) loads(cfg bench.Config) (list []load) {
	one := func(n int) []int { return []int{n} }
	if p.agents == nil {
		if len(cfg.Leases) == 0 {
			cfg.Leases = p.leases
		}
		for _, n := range cfg.Leases {
			l := load{cfg: cfg}
			l.cfg.Leases = one(n)
			list = append(list, l)
		}
		return list
	}
	if len(cfg.Agents) == 0 {
		cfg.Agents = p.agents
	}
	for _, n := range cfg.Agents {
		l := load{cfg, n}
		l.cfg.Agents = one(n)
		list = append(list, l)
	}
	return list
}

// named returns the plans of these scenarios; all for no names.
func named(names []string) (list []plan) {
	for _, p := range plans {
		if len(names) == 0 || slices.Contains(names, p.scenario) {
			list = append(list, p)
		}
	}
	return list
}

// scenarioNames are the scenarios in which peers take part.
func scenarioNames() (names []string) {
	for _, p := range plans {
		names = append(names, p.scenario)
	}
	return names
}

// ours reports whether a target is Interlock.
func ours(target string) bool {
	return slices.ContainsFunc(bench.Transports, func(t bench.Transport) bool {
		return bench.Interlock{Transport: t}.Name() == target
	})
}
