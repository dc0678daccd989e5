package bench

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	last := -1
	for _, d := range []time.Duration{
		0, 1, 63, 64, 65, 127, 128, 129, 130, 1000, time.Microsecond * 250, time.Millisecond, time.Second, time.Minute,
		time.Hour,
	} {
		b := bucket(d)
		if b <= last && d != 129 { // the first bucket of two nanoseconds begins at 128
			t.Errorf("%v is in bucket %d, after %d", d, b, last)
		}
		if low, high := lower(b), lower(b+1); d < low || d >= high || high-low > max(low/64, 1) {
			t.Errorf("%v is in the bucket from %d to %d", d, low, high)
		}
		last = b
	}
	if got, want := bucket(48*time.Hour), len((&Histogram{}).counts)-1; got != want {
		t.Errorf("two days are in bucket %d, want the last, %d", got, want)
	}
	if bucket(-1) != 0 {
		t.Error("a negative time is not in the first bucket")
	}
}

// Quantiles are those of the sorted numbers, as exactly as a bucket is wide.
func TestQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var whole Histogram
	var all []time.Duration
	for range 4 {
		var part Histogram
		for range 1000 {
			d := time.Duration(1 + random.Int64N(1<<(10+random.Int64N(25))))
			all = append(all, d)
			part.Record(d)
		}
		whole.Add(&part)
	}
	slices.Sort(all)
	if whole.Count() != len(all) || whole.Most() != all[len(all)-1] {
		t.Fatalf("%d durations up to %v, want %d up to %v", whole.Count(), whole.Most(), len(all), all[len(all)-1])
	}
	for _, q := range []float64{0, .01, .5, .9, .99, 1} {
		want := all[min(int(q*float64(len(all))), len(all)-1)]
		if got := whole.Quantile(q); got > want || want-got > want/64+1 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if got := (&Histogram{}).Quantile(.5); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
	if n := testing.AllocsPerRun(100, func() { whole.Record(time.Millisecond) }); n != 0 {
		t.Errorf("recording allocates %v times", n)
	}
}
