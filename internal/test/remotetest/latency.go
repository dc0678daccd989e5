package remotetest

import (
	"slices"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// LatencyOfAcquire prints the cost of an acquire, for docs/operations.md.
func LatencyOfAcquire(t *testing.T, e Engine) {
	s := Serve(t, e.URL("latency"))
	s.Becomes("ready")
	one := dial(t, "one", s)
	var took []time.Duration
	for range 1000 {
		began := time.Now()
		l, err := one.Acquire(t.Context(), client.Request{Keys: []interlock.Key{"account:1"}})
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
		if err := l.Release(t.Context(), client.Outcome{}); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(took)
	t.Logf(
		"acquire: n %d, median %v, p99 %v, longest %v", len(took), took[len(took)/2], took[len(took)*99/100],
		took[len(took)-1],
	)
}
