package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/interlockdev/interlock/internal/bench"
)

// fixedPause is how long an agent that polls waits before it tries again.
const fixedPause = 10 * time.Millisecond

// peers are all of them, in the order of the tables. binary is the interlock program.
func peers(binary string) (list []*peer) {
	const (
		anyone  = "none: who tries first after a release has it"
		arrival = "in the order of arrival"
		renewed = "its ttl, which its client renews"
		caller  = "its ttl, which its caller has to renew"
	)
	type client struct {
		name, line, alive string
		scenarios         []string
		synced            []string // more of them, on a Redis that writes to its disk
		most              int
		crew              func(ctx context.Context, addr string, n int) (*bench.Crew, error)
	}
	short := []string{"cycle", "handoff"}
	// Pauses matter only to clients that wait, so polling is measured in one form where none
	// does. The memory of Redis is the same with and without a disk.
	clients := []client{
		{
			"SET NX 10 ms", anyone, caller + ": here every third of it",
			[]string{"cycle", "handoff", "keepalive"},
			[]string{"memory"},
			0, setNXCrew(func() time.Duration { return fixedPause }),
		},
		{
			"SET NX jitter", anyone, caller + ": here every third of it",
			[]string{"handoff"},
			nil, 0,
			setNXCrew(func() time.Duration { return rand.N(2 * fixedPause) }),
		},
		{"redsync", anyone, caller, short, nil, 0, redsyncCrew},
		{"redislock", anyone, caller, short, nil, 0, redislockCrew},
		{
			"rueidislock", anyone + "; agents of one program wake each other", renewed, short,
			[]string{"keepalive", "memory"},
			0, rueidislockCrew(false),
		},
		{"rueidislock connections", anyone + "; all are told of it", renewed, short, nil, 256, rueidislockCrew(true)},
	}
	for _, server := range []redisServer{{sync: true}, {sync: false}} {
		for _, c := range clients {
			name := server.name() + " " + c.name
			if server.sync {
				c.scenarios = slices.Concat(c.scenarios, c.synced)
			}
			list = append(list, &peer{promise{name, server.durable(), c.line, c.alive}, c.scenarios, c.most, server, c.crew})
		}
	}
	const (
		synced  = "yes: synced by its one member before the answer"
		session = "as long as its session, which its client renews"
	)
	const durable = "yes: synced before the answer"
	return append(
		list,
		&peer{
			promise{"interlock resp SET NX 10 ms", durable, anyone, caller},
			short,
			0,
			respDoor{binary},
			setNXCrew(func() time.Duration { return fixedPause }),
		},
		&peer{
			promise{"etcd", synced, arrival, session},
			[]string{"cycle", "handoff", "keepalive", "memory"},
			0,
			etcdServer{},
			etcdCrew(false),
		},
		&peer{promise{"etcd connections", synced, arrival, session}, []string{"keepalive"}, 0, etcdServer{}, etcdCrew(true)},
		&peer{
			promise{
				"postgres", "no: a lock is in memory, a restart forgets all", arrival,
				"as long as its connection: there is nothing to renew",
			},
			short, postgresAgents,
			postgresServer{},
			postgresCrew,
		},
	)
}
