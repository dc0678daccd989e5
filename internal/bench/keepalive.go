package bench

import (
	"context"
	"fmt"
	"time"
)

// perSession is how many leases a session holds where many are held.
const perSession = 100

var keepaliveScenario = Scenario{
	Name:  "keepalive",
	Short: "what held leases cost while nothing happens",
	About: "Leases are held, 100 in a session with a connection of its own and a ttl of 30 s, and nothing happens but " +
		"that they are kept alive: " +
		"what of one core the server and the agents take for that, and by how much the journal grows.",
	Transports: []Transport{Connections},
	cases: func(cfg Config, targets []Target) (cases []Case, err error) {
		for _, n := range cfg.leases(10_000, 100_000) {
			d := cfg.duration(30 * time.Second)
			for _, t := range targets {
				cases = append(cases, on(
					t, fmt.Sprintf("%s leases for %v", Number(float64(n)), d), 1,
					func(ctx context.Context, site Site) ([]Value, error) {
						return keepalive(ctx, site, n, d)
					},
				))
			}
		}
		return cases, nil
	},
}

func keepalive(ctx context.Context, site Site, n int, d time.Duration) ([]Value, error) {
	sessions := max(n/perSession, 1)
	crew, err := site.Crew(ctx, sessions)
	if err != nil {
		return nil, err
	}
	defer crew.Close()
	held, err := hold(ctx, crew.Agents, keyed("bench:", n))
	if err != nil {
		return nil, err
	}
	before, err := site.Usage(ctx)
	if err != nil {
		return nil, err
	}
	own, began := ownCPU(), time.Now()
	if err := pause(ctx, d); err != nil {
		return nil, err
	}
	own = ownCPU() - own
	after, err := site.Usage(ctx)
	if err != nil {
		return nil, err
	}
	elapsed := time.Since(began).Seconds()
	for i := range sessions { // all must still be held: one of each session stands for them
		if err := held.locks[i].Release(ctx); err != nil {
			return nil, fmt.Errorf("a lease was not kept alive: %w", err)
		}
	}
	return []Value{
		count("sessions", sessions),
		share("server CPU", (after.CPU - before.CPU).Seconds(), elapsed),
		share("agents' CPU", own.Seconds(), elapsed),
		{"journal growth", Bytes, float64(after.Written - before.Written)},
	}, nil
}
