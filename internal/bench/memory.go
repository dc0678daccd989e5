package bench

import "context"

// perLine is how many agents wait for one key where many wait.
const perLine = 1000

var memoryScenario = Scenario{
	Name:  "memory",
	Short: "bytes for each lease and each waiter",
	About: "What a held lease takes of the server's memory above its key's own bytes, and what a waiter takes, with a " +
		"tenth as many waiters as leases " +
		"in lines of 1,000. Live is what the server's program needs; resident is what it occupies with all leases held, " +
		"with the reserves of its garbage collector.",
	Transports: []Transport{Stream},
	cases: func(cfg Config, targets []Target) (cases []Case, err error) {
		for _, n := range cfg.leases(1_000_000) {
			waiters := max(n/10, 1) // the limit of a namespace is on leases and waiters together
			leases := max(n-waiters, 1)
			for _, t := range targets {
				cases = append(cases, on(
					t, Number(float64(leases))+" leases, "+Number(float64(waiters))+" waiters", 1,
					func(ctx context.Context, site Site) ([]Value, error) {
						return memory(ctx, site, leases, waiters)
					},
				))
			}
		}
		return cases, nil
	},
}

func memory(ctx context.Context, site Site, leases, waiters int) ([]Value, error) {
	holders := min(leases, holdWidth)
	crew, err := site.Crew(ctx, holders+waiters)
	if err != nil {
		return nil, err
	}
	defer crew.Close()
	empty, err := site.Settle(ctx)
	if err != nil {
		return nil, err
	}
	held, err := hold(ctx, crew.Agents[:holders], keyed("bench:", leases))
	if err != nil {
		return nil, err
	}
	full, err := site.Settle(ctx)
	if err != nil {
		return nil, err
	}
	var crowded Usage
	lines := min((waiters+perLine-1)/perLine, leases)
	err = held.crowd(ctx, crew.Agents[holders:], lines, func() (err error) {
		crowded, err = site.Settle(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	n, w, key := float64(leases), float64(waiters), held.keyBytes()
	return []Value{
		{"live per lease", Bytes, float64(full.Live-empty.Live)/n - key},
		{"resident per lease", Bytes, float64(full.Resident-empty.Resident)/n - key},
		{"live per waiter", Bytes, float64(crowded.Live-full.Live) / w},
		{"key", Bytes, key},
	}, nil
}
