package placement

import "math/bits"

// MaxShards is the largest number of shards that a journal can be made with.
const MaxShards = 1024

// Shard returns the shard from 0 to shards-1 that a namespace belongs to unless a Directory has an
// exception. The value for each name and number is fixed for ever. shards is from 1 to MaxShards.
//
// It is the jump consistent hash of Lamping and Veach ("A Fast, Minimal Memory, Consistent Hash
// Algorithm", 2014), in whole numbers: with one more shard, one name in shards+1 moves, and to the new
// shard only.
func Shard(namespace string, shards int) int {
	key := hash(namespace)
	b, next := uint64(0), uint64(0)
	for next < uint64(shards) {
		b = next
		key = key*2862933555777941757 + 1
		next = (b + 1) << 31 / (key>>33 + 1)
	}
	return int(b)
}

// hash is FNV-1a of 64 bits, mixed: the upper bits of FNV depend too little on the last letters.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood 2014): each bit of x changes each bit of the
// result with a probability of a half.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// cost is -log2((h+1)/2^64) with 32 binary places.
func cost(h uint64) uint64 {
	h = max(h, 1)
	zeros := bits.LeadingZeros64(h)
	m := h << zeros // from 1 to 2, with 63 binary places
	log := uint64(63 - zeros)
	for range 32 {
		// The square of m is from 1 to 4. If it is 2 or more, the next binary place is 1.
		hi, lo := bits.Mul64(m, m)
		if log <<= 1; hi >= 1<<63 {
			log, m = log|1, hi
		} else {
			m = hi<<1 | lo>>63
		}
	}
	return 64<<32 - log
}
