package histogram

import (
	"math"
	"time"
)

// Histogram counts durations in buckets that grow by a factor of 2^(1/4), from 1 ms to 3 years. The zero value is
// empty.
type Histogram struct {
	n       int
	buckets [148]int
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	i := 0
	if d > time.Millisecond {
		i = int(math.Ceil(4 * math.Log2(float64(d)/float64(time.Millisecond))))
	}
	h.n++
	h.buckets[min(i, len(h.buckets)-1)]++
}

// Count returns how many durations were counted.
func (h *Histogram) Count() int { return h.n }

// Percentile returns the upper end of the bucket with a percentile from 1 to 100; 0 if the histogram is empty.
func (h *Histogram) Percentile(p int) time.Duration {
	if h.n == 0 {
		return 0
	}
	want := (h.n*p + 99) / 100
	for i, n := range h.buckets {
		if want -= n; want <= 0 {
			return time.Duration(float64(time.Millisecond) * math.Exp2(float64(i)/4))
		}
	}
	return 0
}
