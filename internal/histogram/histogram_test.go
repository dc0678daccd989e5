package histogram

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	var empty Histogram
	if got := empty.Percentile(99); got != 0 {
		t.Errorf("an empty histogram has %v", got)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var h Histogram
		var all []time.Duration
		for range 1 + rng.IntN(500) {
			d := time.Duration(rng.Int64N(int64(time.Hour)))
			all = append(all, d)
			h.Add(d)
		}
		slices.Sort(all)
		for _, p := range []int{1, 50, 95, 99, 100} {
			want := all[(len(all)*p+99)/100-1]
			got := h.Percentile(p)
			if got+time.Microsecond < want || got > max(want*6/5, time.Millisecond) {
				t.Fatalf("p%d is %v, want %v", p, got, want)
			}
		}
	}
}
