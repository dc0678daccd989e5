package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// A session's leases are looked through in several steps. A renewal in between that shortens the ttl
// of one that was looked at already ends it in time.
func TestShorterTTLWhileASessionIsSwept(t *testing.T) {
	for shortened := range 12 {
		l := newLoad(t)
		l.e.StepAtMost(4)
		l.e.GatherAtMost(2)
		s := l.open(time.Hour)
		var leases []interlock.LeaseID
		for i := range 12 {
			id, _ := l.acquire(s, fmt.Sprint("flow ", i), 30*time.Minute, fmt.Sprint("k", i))
			leases = append(leases, id)
		}
		l.now = l.now.Add(20 * time.Minute) // soft: all are looked at
		for range 3 {
			l.step(&engine.Tick{Head: engine.Head{At: l.now}})
		}
		renew := &engine.Renew{Head: l.head(s), Lease: leases[shortened], TTL: time.Second}
		if eff := l.step(renew); eff.Outcome != engine.Granted || eff.Lease.TTL != time.Second {
			t.Fatalf("%+v", eff)
		}
		l.pass(0) // the rest is looked at
		l.pass(time.Second)
		l.pass(interlock.DefaultGrace)
		if n := l.e.Counts().Leases; n != len(leases)-1 {
			t.Errorf("lease %d with a ttl of a second has not ended: there are %d leases", shortened, n)
		}
	}
}
