package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
)

// perAgent is how many leases a session of scale holds, unless the number of sessions is given.
const perAgent = 10

var scaleScenario = Scenario{
	Name:  "scale",
	Short: "many sessions with many leases, and the death of each server",
	About: "Leases are held, 10 in a session, in 100 namespaces or more, so that all shards have some. A stream " +
		"carries all sessions of a namespace, at most 1,000. Streams begin at the servers in turn and move to the " +
		"owners of their shards, as the Go client does. All leases are kept alive, with a ttl of 30 s and a " +
		"heartbeat every 10 s: first bundled, 250 in a frame, then single, each in a frame of its own. Then, with " +
		"bundles, each server is killed in turn and, but for the last one, started again when all leases were " +
		"read. A fail-over is the time from the kill until each session of a namespace has had an answer to a " +
		"heartbeat that was sent after it. p50 and max are over the namespaces whose shard had to move, hop max " +
		"over the others.",
	Transports: []Transport{Stream},
	Own:        true,
	Engine:     true,
	Tall:       true,
	cases: func(cfg Config, targets []Target) (cases []Case, err error) {
		for _, n := range cfg.leases(1_000_000) {
			sessions := cmp.Or(cfg.Sessions, max(n/perAgent, 1))
			for _, t := range targets {
				own, ok := t.(Interlock)
				if !ok || own.Running != nil {
					return nil, fmt.Errorf("%s is not a server of our own", t.Name())
				}
				servers := 1
				if own.Journal != "" {
					servers = cmp.Or(cfg.Servers, 3)
				}
				cases = append(cases, Case{
					Load: fmt.Sprintf(
						"%s leases, %s sessions, %d servers", Number(float64(n)), Number(float64(sessions)), servers,
					),
					Target: t.Name(), Repeat: 1,
					run: func(ctx context.Context) ([]Value, error) {
						f, err := openFleet(ctx, own, servers, cmp.Or(cfg.Shards, 16))
						if err != nil {
							return nil, err
						}
						values, err := scale(ctx, f, sessions, n, cfg.duration(30*time.Second))
						return values, errors.Join(err, f.close())
					},
				})
			}
		}
		return cases, nil
	},
}

func scale(ctx context.Context, f *fleet, sessions, leases int, d time.Duration) ([]Value, error) {
	empty, err := f.settle(ctx)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancelCause(ctx)
	w := newSwarm(f, sessions, leases)
	w.start(ctx, end)
	defer func() {
		end(nil)
		w.running.Wait()
	}()
	began := time.Now()
	if err := w.all(ctx, (*trunk).open); err != nil {
		return nil, err
	}
	opened := time.Since(began)
	before, err := f.settle(ctx)
	if err != nil {
		return nil, err
	}
	began = time.Now()
	if err := w.all(ctx, (*trunk).acquire); err != nil {
		return nil, err
	}
	taken := time.Since(began)
	after, err := f.usage(ctx)
	if err != nil {
		return nil, err
	}
	full, err := f.settle(ctx)
	if err != nil {
		return nil, err
	}
	n := float64(leases)
	values := []Value{
		count("namespaces", len(w.trunks)), rate("sessions opened", sessions, opened), rate("leases taken", leases, taken),
		{"CPU per lease", Microseconds, (after.CPU - before.CPU).Seconds() * 1e6 / n},
		{"appended per lease", Bytes, float64(after.Written-before.Written) / n},
		{"live per session", Bytes, float64(before.Live-empty.Live) / float64(sessions)},
		{"live per lease", Bytes, float64(full.Live-before.Live) / n},
		{"resident", Bytes, float64(full.Resident)},
		{"resident at most", Bytes, float64(full.most)},
	}
	for _, single := range []bool{false, true} {
		held, err := w.keep(ctx, single, d)
		if err != nil {
			return nil, err
		}
		values = append(values, held...)
	}
	if err := w.pace(ctx, false); err != nil {
		return nil, err
	}
	died, err := w.die(ctx)
	if err != nil {
		return nil, err
	}
	return append(values, died...), w.all(ctx, (*trunk).close)
}

// keep measures what it takes to keep all leases alive for d.
func (w *swarm) keep(ctx context.Context, single bool, d time.Duration) ([]Value, error) {
	if err := w.pace(ctx, single); err != nil {
		return nil, err
	}
	before, err := w.fleet.usage(ctx)
	if err != nil {
		return nil, err
	}
	own, began, beats := ownCPU(), time.Now(), w.beats.Load()
	if err := pause(ctx, d); err != nil {
		return nil, err
	}
	own, beats = ownCPU()-own, w.beats.Load()-beats
	elapsed := time.Since(began)
	after, err := w.fleet.usage(ctx)
	if err != nil {
		return nil, err
	}
	how := "bundled"
	if single {
		how = "single"
	}
	cpu := (after.CPU - before.CPU).Seconds()
	each := 0.0
	if beats > 0 {
		each = cpu * 1e6 / float64(beats)
	}
	return []Value{
		rate(how+" heartbeats", int(beats), elapsed), share(how+" CPU", cpu, elapsed.Seconds()),
		share(how+" agents' CPU", own.Seconds(), elapsed.Seconds()),
		{how + " CPU per heartbeat", Microseconds, each},
		{how + " appended", Bytes, float64(after.Written - before.Written)},
	}, nil
}

// die kills each server in turn. With others it is started again only after a fail-over.
func (w *swarm) die(ctx context.Context) ([]Value, error) {
	var (
		moved, others []time.Duration
		lost          int
		most          int64
		again         time.Duration
	)
	for i, site := range w.fleet.sites {
		epochs := make([]interlock.Epoch, len(w.trunks))
		if err := w.all(ctx, func(t *trunk, _ context.Context) error {
			epochs[t.number] = t.epoch
			return nil
		}); err != nil {
			return nil, err
		}
		killed := time.Now()
		if err := site.End(ctx, true); err != nil {
			return nil, err
		}
		alone := len(w.fleet.sites) == 1
		if alone {
			if err := w.fleet.start(ctx, i); err != nil {
				return nil, err
			}
		}
		var mu sync.Mutex
		if err := w.all(ctx, func(t *trunk, ctx context.Context) error {
			err := t.heartbeat(ctx)
			mu.Lock()
			defer mu.Unlock()
			if t.epoch != epochs[t.number] {
				moved = append(moved, time.Since(killed))
			} else {
				others = append(others, time.Since(killed))
			}
			return err
		}); err != nil {
			return nil, err
		}
		gone, err := w.verify(ctx)
		if err != nil {
			return nil, err
		}
		lost = max(lost, gone)
		u, err := w.fleet.usage(ctx)
		if err != nil {
			return nil, err
		}
		most = max(most, u.most)
		if !alone && i < len(w.fleet.sites)-1 {
			began := time.Now()
			if err := w.fleet.start(ctx, i); err != nil {
				return nil, err
			}
			if err := w.fleet.even(ctx); err != nil {
				return nil, err
			}
			again = max(again, time.Since(began))
		}
	}
	slices.Sort(moved)
	slices.Sort(others)
	values := []Value{
		count("namespaces moved", len(moved)), milli("fail-over p50", middle(moved)), milli("fail-over max", last(moved)),
		milli("hop max", last(others)), count("leases lost", lost),
		{"resident of a survivor", Bytes, float64(most)},
	}
	return append(values, Value{"even again", Seconds, again.Seconds()}), nil
}

// middle is the median of sorted durations, and last the longest; 0 of none.
func middle(sorted []time.Duration) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

func last(sorted []time.Duration) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)-1]
}
