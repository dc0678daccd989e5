package remotetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/test/busy"
)

// zone is where a server runs: how long the way to the engine and to the other zones takes, there and back. Its agents
// are beside it.
type zone struct {
	name      string
	roundTrip time.Duration
}

var zones = []zone{{"near", time.Millisecond}, {"region", 5 * time.Millisecond}, {"far", 70 * time.Millisecond}}

// ThreeZones prints what distance costs, for docs/scale.md: with a server in each zone, and the owner of the only
// shard in each of them in turn. No lease with a ttl of 10 s is lost, whatever dies and wherever the owner is. line
// returns the URL of a journal over a line to the engine.
func ThreeZones(t *testing.T, line func(name string, roundTrip time.Duration) string) {
	for i, owner := range zones {
		t.Run(owner.name, func(t *testing.T) {
			order := slices.Concat(zones[i:i+1], zones[:i], zones[i+1:])
			var servers []*Instance
			for n, z := range order {
				ports := busy.Ports(t, 2)
				http, grpc := NewLine(t, "127.0.0.1", ports[0], z.roundTrip), NewLine(t, "127.0.0.1", ports[1], z.roundTrip)
				s := ServeAt(t, nil, ports[0], ports[1], "--journal", line("zones-"+owner.name, z.roundTrip), "--shards", "1",
					"--advertise-http", "http://"+http.Addr, "--advertise-grpc", grpc.Addr)
				s.Becomes([]string{"ready", "standby", "standby"}[n])
				servers = append(servers, s)
			}
			for n, z := range order {
				agents := servers[n]
				if n > 0 {
					// Their way to the owner is as long as by way of their server.
					agents = &Instance{grpc: NewLine(t, "127.0.0.1", servers[0].grpc, max(owner.roundTrip, z.roundTrip)).Addr}
				}
				t.Run(z.name, func(t *testing.T) {
					measureZone(t, agents, fmt.Sprintf("owner %s, agents %s", owner.name, z.name), z.name)
				})
			}
			leases := keepLeases(t, servers)
			end := func(how string, end func(*Instance)) {
				i := slices.IndexFunc(servers, func(s *Instance) bool { return s.get("/readyz?role=active").status == 200 })
				moved := servers[i]
				servers = slices.Delete(servers, i, i+1)
				began := time.Now()
				end(moved)
				after := dial(t, how, servers...)
				l, err := after.Acquire(busy.Context(t), client.Request{Keys: []interlock.Key{interlock.Key("after:" + how)}})
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("the owner (first it is %s) is %s: the next lease after %v", owner.name, how, time.Since(began))
				_ = l.Release(t.Context(), client.Outcome{})
			}
			end("stopped", func(s *Instance) {
				s.signal(syscall.SIGTERM)
				s.Ends()
			})
			end("killed", func(s *Instance) { s.Kill() })
			for _, l := range leases {
				if err := context.Cause(l.Context()); err != nil {
					t.Errorf("the lease on %s: %v", l.Key(), err)
				}
				if err := l.Release(busy.Context(t), client.Outcome{}); err != nil {
					t.Errorf("the release of %s: %v", l.Key(), err)
				}
			}
		})
	}
}

// keepLeases has agents of each zone take leases with a ttl of 10 s, which their clients keep.
func keepLeases(t *testing.T, servers []*Instance) (leases []*client.Lease) {
	for i := range 3 * len(servers) {
		// The first server on an agent's list is that of its zone.
		list := slices.Concat(servers[i%len(servers):], servers[:i%len(servers)])
		l, err := dial(t, fmt.Sprintf("kept-%d", i), list...).Acquire(busy.Context(t), client.Request{
			Keys: []interlock.Key{interlock.Key(fmt.Sprintf("kept:%d", i))}, Terms: interlock.Terms{TTL: 10 * time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
	}
	return leases
}

// measureZone prints what agents beside a server see: one alone, the next in line, and 16 at a time.
func measureZone(t *testing.T, s *Instance, what, name string) {
	var acquires, passes []time.Duration
	one, two := dial(t, "one", s), dial(t, "two", s)
	key := []interlock.Key{interlock.Key("passed:" + name)}
	for range 20 {
		began := time.Now()
		l := acquire(t, one, key)
		acquires = append(acquires, time.Since(began))
		next := make(chan time.Time, 1)
		ticket, once := make(chan struct{}), new(sync.Once)
		go func() {
			second, err := two.Acquire(t.Context(), client.Request{
				Keys: key, OnConflict: interlock.Wait,
				OnQueued: func(interlock.Ticket, []interlock.Holder) { once.Do(func() { close(ticket) }) },
			})
			at := time.Now()
			if err == nil {
				err = second.Release(t.Context(), client.Outcome{})
			}
			if err != nil {
				t.Error(err)
			}
			next <- at
		}()
		<-ticket
		began = time.Now()
		if err := l.Release(t.Context(), client.Outcome{}); err != nil {
			t.Fatal(err)
		}
		passes = append(passes, (<-next).Sub(began))
	}
	var agents sync.WaitGroup
	var cycles atomic.Int64
	var many []*client.Client
	for i := range 16 {
		many = append(many, dial(t, fmt.Sprintf("many-%d", i), s))
	}
	began := time.Now()
	for i, c := range many {
		agents.Go(func() {
			for time.Since(began) < 2*time.Second {
				l := acquire(t, c, []interlock.Key{interlock.Key(fmt.Sprintf("%s:%d", name, i))})
				if err := l.Release(t.Context(), client.Outcome{}); err != nil {
					t.Error(err)
					return
				}
				cycles.Add(1)
			}
		})
	}
	agents.Wait()
	slices.Sort(acquires)
	slices.Sort(passes)
	t.Logf("%s: acquire %v, p95 %v; release until the next in line has it %v, p95 %v; 16 agents %.0f cycles/s", what,
		acquires[len(acquires)/2], acquires[len(acquires)*95/100], passes[len(passes)/2], passes[len(passes)*95/100],
		float64(cycles.Load())/time.Since(began).Seconds())
}

func acquire(t *testing.T, c *client.Client, keys []interlock.Key) *client.Lease {
	l, err := c.Acquire(t.Context(), client.Request{Keys: keys})
	if err != nil {
		t.Error(err)
		panic(err)
	}
	return l
}
