package bench

import (
	"context"
	"fmt"
	"time"
)

var commitScenario = Scenario{
	Name:       "commit",
	Short:      "conditional commits on distinct documents",
	About:      "Agents commit a document of their own, each time on the version that they have written before.",
	Transports: []Transport{Stream},
	cases: func(cfg Config, targets []Target) (cases []Case, err error) {
		for _, n := range cfg.agents(1, 16, 64, 256) {
			for _, t := range targets {
				cases = append(cases, on(t, headcount(n), 3, func(ctx context.Context, site Site) ([]Value, error) {
					return commits(ctx, site, n, cfg.duration(time.Second))
				}))
			}
		}
		return cases, nil
	},
}

func commits(ctx context.Context, site Site, n int, d time.Duration) ([]Value, error) {
	crew, err := site.Crew(ctx, n)
	if err != nil {
		return nil, err
	}
	defer crew.Close()
	stores, err := storesOf(crew)
	if err != nil {
		return nil, err
	}
	keys, versions := keyed("bench-document:", n), make([]uint64, n)
	for i := range stores {
		if versions[i], err = stores[i].Read(ctx, keys[i]); err != nil {
			return nil, err
		}
	}
	took, elapsed, err := drive(ctx, n, d, func(ctx context.Context, i int) (err error) {
		versions[i], err = stores[i].Commit(ctx, keys[i], versions[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	return append([]Value{rate("commits", took.Count(), elapsed)}, quantiles(took)...), nil
}

// storesOf returns the crew as committers.
func storesOf(crew *Crew) ([]Store, error) {
	stores := make([]Store, len(crew.Agents))
	for i, a := range crew.Agents {
		store, ok := a.(Store)
		if !ok {
			return nil, fmt.Errorf(
				"it has no documents with versions, or they are not measured there: use --transport %s or %s", Stream, Connections,
			)
		}
		stores[i] = store
	}
	return stores, nil
}
