package bench

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// alone is the duration of a cycle of a bare engine: no journal, no API and no other goroutine.
type alone struct{ few, many time.Duration }

// engine has an engine hold as many of the keys as the server does, and cycle beside them.
func (g growth) engine(keys []string, few int) (a alone, err error) {
	k := newKernel()
	for _, key := range keys[:few] {
		k.acquire(interlock.Key(key))
	}
	a.few = k.cycles(g.agents, g.duration/4)
	for _, key := range keys[few:] {
		k.acquire(interlock.Key(key))
	}
	a.many = k.cycles(g.agents, g.duration/4)
	if k.refused != "" {
		return a, fmt.Errorf("the engine refused what the server granted: %s", k.refused)
	}
	return a, nil
}

// kernel is an engine with one session; its commands come as over a stream.
type kernel struct {
	e       *engine.Engine
	out     engine.Output
	session interlock.SessionID
	seq     uint64
	refused string // why, the last time
}

func newKernel() *kernel {
	k := &kernel{e: engine.New(), session: interlock.SessionID{1}}
	k.step(&engine.Recover{Head: engine.Head{At: 1}, Epoch: 1})
	h := k.head()
	h.Session = interlock.SessionID{}
	k.step(&engine.OpenSession{Head: h, ID: k.session, Agent: "bench", TTL: interlock.MaxTTL})
	return k
}

func (k *kernel) step(cmd engine.Command) {
	k.out.Entry, k.out.Events, k.out.Effects = k.out.Entry[:0], k.out.Events[:0], k.out.Effects[:0]
	k.e.Step(cmd, &k.out)
	for i := range k.out.Effects {
		if eff := &k.out.Effects[i]; eff.Outcome == engine.Refused {
			k.refused = prose.Sentence(eff.Message)
		}
	}
}

// head is that of the next command; the answers to all before it have been seen.
func (k *kernel) head() engine.Head {
	k.seq++
	return engine.Head{At: 1, Namespace: "bench", Session: k.session, From: k, Seq: k.seq, Acked: k.seq - 1}
}

func (k *kernel) acquire(key interlock.Key) (id [16]byte) {
	h := k.head()
	binary.BigEndian.PutUint64(id[:], k.seq)
	k.step(&engine.Acquire{
		Head: h, ID: id, LeaseRequest: interlock.LeaseRequest{
			Flow: "agent", Claims: []interlock.Claim{{Key: key, Mode: interlock.Exclusive}},
			OnConflict: interlock.Wait,
		},
		Attach: true,
	})
	return id
}

// cycles acquires and releases n keys in turn for a while, and returns how long each took.
func (k *kernel) cycles(n int, d time.Duration) time.Duration {
	keys := keyed("bench:", n)
	runtime.GC() // collect the garbage of making the keys: else it falls on the cycles
	began, done := time.Now(), 0
	for done == 0 || time.Since(began) < d {
		for _, key := range keys {
			id := k.acquire(interlock.Key(key))
			k.step(&engine.Release{Head: k.head(), Lease: interlock.LeaseID(id)})
			done++
		}
	}
	return time.Since(began) / time.Duration(done)
}
