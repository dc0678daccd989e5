package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// A renewal makes the ttl of a lease shorter while its session's leases are looked through over several steps, and one
// of them has passed the lease already. It ends in time all the same.
func TestShorterTTLDuringSweep(t *testing.T) {
	l := newLoad(t)
	s := l.open(time.Hour)
	var newest [16]byte
	for i := range 8 {
		newest = l.id()
		l.step(&engine.Acquire{Head: l.head(s), ID: newest, LeaseRequest: interlock.LeaseRequest{
			Claims: []interlock.Claim{{Key: interlock.Key(fmt.Sprint(i)), Mode: interlock.Exclusive}},
			Terms:  interlock.Terms{TTL: time.Minute, Grace: engine.NoGrace},
		}})
	}
	l.e.StepAtMost(3)
	l.e.GatherAtMost(1)
	l.later(40 * time.Second) // the leases get soft, and the search begins with the newest
	if !l.e.IsUnfinished() {
		t.Fatal("the search has ended in one step")
	}
	l.step(&engine.Renew{Head: l.head(s), Lease: newest, TTL: 6 * time.Second})
	l.e.StepAtMost(engine.StepObjects)
	l.pass(0)
	l.pass(7 * time.Second)
	if n := l.e.Counts().Leases; n != 7 {
		t.Errorf("%d leases are left, want all but that one", n)
	}
}
