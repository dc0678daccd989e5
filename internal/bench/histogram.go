package bench

import (
	"math/bits"
	"time"
)

// Histogram counts durations in buckets with a width of at most 1/64 of their lower bound. It
// has a fixed size, and recording allocates nothing. The zero value is ready.
type Histogram struct {
	counts [(maxOctave + 1) << subBits]uint64
	n      uint64
	most   time.Duration
}

const (
	subBits   = 6
	maxOctave = 36 // durations up to 2^(36+6) ns, which is above an hour; longer ones count as that
)

// bucket is exact below 64 ns, and from there the octave and the 6 bits after the first.
func bucket(d time.Duration) int {
	v := uint64(max(d, 0))
	octave := max(bits.Len64(v)-1-subBits, 0)
	if octave >= maxOctave {
		return len((&Histogram{}).counts) - 1
	}
	if v < 1<<subBits {
		return int(v)
	}
	return (octave+1)<<subBits + int(v>>octave) - 1<<subBits
}

// lower is the least duration of a bucket.
func lower(b int) time.Duration {
	if b < 1<<subBits {
		return time.Duration(b)
	}
	octave := b>>subBits - 1
	return time.Duration(1<<subBits+b&(1<<subBits-1)) << octave
}

// Record counts one duration.
func (h *Histogram) Record(d time.Duration) {
	h.counts[bucket(d)]++
	h.n++
	h.most = max(h.most, d)
}

// Add counts what another one has counted.
func (h *Histogram) Add(o *Histogram) {
	for i, c := range o.counts {
		h.counts[i] += c
	}
	h.n += o.n
	h.most = max(h.most, o.most)
}

// Count is how many durations were recorded.
func (h *Histogram) Count() int { return int(h.n) }

// Most is the longest, exactly.
func (h *Histogram) Most() time.Duration { return h.most }

// Quantile is a duration that a share q of them does not exceed, rounded down to its
// bucket; 0 if there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.n))
	rank = min(rank, max(h.n, 1)-1)
	var seen uint64
	for b, c := range h.counts {
		if seen += c; seen > rank {
			return lower(b)
		}
	}
	return 0
}
