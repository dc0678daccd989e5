package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// The figures of guarded state and of effects. GET /v1/contention reports how the commits of one
// pattern fare: the names of patterns are their tenants' own, and their number has no bound.

func (f *figures) newStateFigures() {
	f.commits = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "interlock_commits_total",
		Help: "Commits, by their answer: committed, or the code of a refusal, such as stale.",
	}, []string{"outcome"})
	f.committed, f.stale = f.commits.WithLabelValues(committed), f.commits.WithLabelValues(string(interlock.CodeStale))
	written := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "interlock_documents_written_total",
		Help: "Documents that commits wrote, by how: put, delete, merge, add.",
	}, []string{"op"})
	for op := interlock.Put; op <= interlock.Add; op++ {
		f.written[op] = written.WithLabelValues(op.String())
	}
	effects := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "interlock_effects_total",
		Help: "Transitions of effects: claimed, done, unknown (the outcome could not be determined), free (reconciled as " +
			"not done).",
	}, []string{"state"})
	f.effects = map[string]prometheus.Counter{}
	for state := interlock.EffectState(0); state <= interlock.EffectUnknown; state++ {
		f.effects[effectState(state)] = effects.WithLabelValues(effectState(state))
	}
	f.registry.MustRegister(f.commits, written, effects)
}

// committed is the outcome of a commit that went through, in answers and in figures.
const committed = "committed"

// commit counts the answer to a commit.
func (f *figures) commit(eff *engine.Effect) {
	switch {
	case eff.Outcome != engine.Refused:
		f.committed.Inc()
	case eff.Code == interlock.CodeStale:
		f.stale.Inc()
	default:
		f.commits.WithLabelValues(string(eff.Code)).Inc() // the list is closed
	}
}
