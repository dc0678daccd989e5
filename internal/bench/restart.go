package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var restartScenario = Scenario{
	Name:  "restart",
	Short: "from the start of the process to the first answer",
	About: "A server with many held leases is ended, in order or by SIGKILL, and started again on its journal: how " +
		"long it takes from the start of " +
		"its process until it has granted a lease. The files are in the system's cache, as after a crash of the process; " +
		"not as after one of the machine.",
	Transports: []Transport{Stream},
	Own:        true,
	cases: func(cfg Config, targets []Target) (cases []Case, err error) {
		for _, n := range cfg.leases(1_000_000) {
			for _, t := range targets {
				for _, kill := range []bool{false, true} {
					how := "stopped"
					if kill {
						how = "killed"
					}
					// The limit of a namespace is n, and the first answer is one more lease.
					cases = append(cases, on(
						t, Number(float64(n))+" leases, "+how, 1, func(ctx context.Context, site Site) ([]Value, error) {
							return restart(ctx, site, max(n-1, 1), kill)
						},
					))
				}
			}
		}
		return cases, nil
	},
}

func restart(ctx context.Context, site Site, n int, kill bool) ([]Value, error) {
	r, ok := site.(Restarter)
	if !ok {
		return nil, errors.New("it cannot be restarted here")
	}
	crew, err := site.Crew(ctx, min(n, holdWidth))
	if err != nil {
		return nil, err
	}
	began := time.Now()
	held, err := hold(ctx, crew.Agents, keyed("bench:", n))
	if err != nil {
		return nil, err
	}
	filled := time.Since(began)
	ended := time.Now()
	if err := r.End(ctx, kill); err != nil {
		return nil, err
	}
	stopped, started := time.Since(ended), time.Now()
	if err := r.Start(ctx); err != nil {
		return nil, err
	}
	answered := time.Since(started)
	if crew, err = site.Crew(ctx, 1); err != nil {
		return nil, err
	}
	defer crew.Close()
	if _, err := crew.Agents[0].Try(ctx, held.keys[0]); !errors.Is(err, ErrHeld) {
		return nil, fmt.Errorf("a lease was lost: trying to take it gave %v", err)
	}
	u, err := site.Usage(ctx)
	if err != nil {
		return nil, err
	}
	return []Value{
		milli("first answer", answered), milli("end", stopped), rate("leases taken", n, filled),
		{"resident", Bytes, float64(u.Resident)},
	}, nil
}
