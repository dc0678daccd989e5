package bench

import (
	"context"
	"fmt"
	"time"
)

var cycleScenario = Scenario{
	Name:  "cycle",
	Short: "acquire and release of distinct keys, beside a bare HTTP echo",
	About: "Agents acquire and release a key of their own, over and over: what a lease costs when nobody is in the way. " +
		"Where a bare net/http JSON echo stands beside the HTTP transport, it answers as many calls and does nothing. " +
		"With --journal the same runs over journals in engines, and ratio is cycles there to those with a directory.",
	Transports: Transports,
	Yardstick:  true,
	cases: func(cfg Config, targets []Target) (cases []Case, err error) {
		for _, n := range cfg.agents(1, 16, 64, 256) {
			for _, t := range targets {
				c := on(t, headcount(n), 3, func(ctx context.Context, site Site) ([]Value, error) {
					return cycles(ctx, site, n, cfg.duration(time.Second))
				})
				if over, ok := t.(Interlock); ok && over.Journal != "" {
					c.Against = Interlock{Transport: over.Transport}.Name()
				}
				cases = append(cases, c)
			}
		}
		return cases, nil
	},
}

func cycles(ctx context.Context, site Site, n int, d time.Duration) ([]Value, error) {
	crew, err := site.Crew(ctx, n)
	if err != nil {
		return nil, err
	}
	defer crew.Close()
	keys := keyed("bench:", n)
	took, elapsed, err := drive(
		ctx, n, d, func(ctx context.Context, i int) error { return cycle(ctx, crew.Agents[i], keys[i]) },
	)
	if err != nil {
		return nil, err
	}
	return append([]Value{rate("cycles", took.Count(), elapsed)}, quantiles(took)...), nil
}

// cycle acquires one key and releases it again.
func cycle(ctx context.Context, a Agent, key string) error {
	lock, err := a.Acquire(ctx, key, nil)
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

// headcount returns how many agents there are.
func headcount(n int) string {
	if n == 1 {
		return "1 agent"
	}
	return Number(float64(n)) + " agents"
}

// keyed returns n keys.
func keyed(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(prefix, i)
	}
	return keys
}
