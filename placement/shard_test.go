package placement

import (
	"fmt"
	"hash/fnv"
	"math"
	"testing"
)

// TestShardForEver has values that are on disks: they never change.
func TestShardForEver(t *testing.T) {
	for _, c := range []struct {
		namespace          string
		of16, of64, of1024 int
	}{
		{"", 11, 27, 978},
		{"default", 7, 41, 1007},
		{"a", 9, 57, 572},
		{"b", 12, 38, 467},
		{"aa", 3, 16, 820},
		{"acme", 9, 9, 592},
		{"acme-staging", 6, 63, 683},
		{"globex", 1, 42, 42},
		{"tenant-1", 5, 50, 855},
		{"tenant-2", 8, 28, 315},
		{"org:42", 13, 22, 22},
		{"ünïcode", 6, 61, 164},
		{"0123456789012345678901234567890123456789012345678901234567890123", 9, 55, 535},
	} {
		got := [3]int{Shard(c.namespace, 16), Shard(c.namespace, 64), Shard(c.namespace, MaxShards)}
		if want := [3]int{c.of16, c.of64, c.of1024}; got != want {
			t.Errorf("%q is in shards %v of 16, 64 and 1024, want %v", c.namespace, got, want)
		}
		if s := Shard(c.namespace, 1); s != 0 {
			t.Errorf("%q is in shard %d of one", c.namespace, s)
		}
	}
}

// TestShardIsJumpHash compares with the algorithm as its paper has it, in floating point, over FNV-1a of
// the library.
func TestShardIsJumpHash(t *testing.T) {
	for i := range 50_000 {
		name, shards := fmt.Sprintf("tenant-%d", i), 1+i%MaxShards
		h := fnv.New64a()
		h.Write([]byte(name))
		key := mix(h.Sum64())
		b, j := int64(-1), int64(0)
		for j < int64(shards) {
			b = j
			key = key*2862933555777941757 + 1
			j = int64(float64(b+1) * (float64(1<<31) / float64(key>>33+1)))
		}
		if got := Shard(name, shards); got != int(b) {
			t.Fatalf("%s is in shard %d of %d, want %d", name, got, shards, b)
		}
	}
}

// TestShardsGrow has more and more shards: each time, names move to the new one only, and no more or
// fewer than its part.
func TestShardsGrow(t *testing.T) {
	const names = 20_000
	last := make([]int, names)
	for shards := 2; shards <= 128; shards++ {
		moved := 0
		for i := range last {
			shard := Shard(fmt.Sprintf("tenant-%d", i), shards)
			switch {
			case shard == last[i]:
			case shard != shards-1:
				t.Fatalf("tenant-%d moves from shard %d to %d when shard %d comes", i, last[i], shard, shards-1)
			default:
				moved++
				last[i] = shard
			}
		}
		mean := names / float64(shards)
		if math.Abs(float64(moved)-mean) > 5*math.Sqrt(mean) {
			t.Errorf("%d of %d names move to shard %d, want about %.0f", moved, names, shards-1, mean)
		}
	}
}

// TestShardsAlike has names that differ in their last letter, or in their first: all shards get their part.
func TestShardsAlike(t *testing.T) {
	for _, form := range []string{"tenant-%04d", "%04d-tenant", "%d", "a/b/%04d/c"} {
		const shards, names = 16, 8000
		var count [shards]float64
		for i := range names {
			count[Shard(fmt.Sprintf(form, i), shards)]++
		}
		chi := 0.0
		for _, n := range count {
			chi += (n - names/shards) * (n - names/shards) / (names / shards)
		}
		if chi > 45 { // of 15 degrees of freedom: one in 10,000
			t.Errorf("names like %q are in shards %v: chi squared is %.0f", form, count, chi)
		}
	}
}

// TestCost compares the logarithm in whole numbers with that of the library.
func TestCost(t *testing.T) {
	for i := range uint64(100_000) {
		h := mix(i) >> (i % 64)
		got, want := float64(cost(h))/(1<<32), 64-math.Log2(float64(max(h, 1)))
		if math.Abs(got-want) > 1e-8 {
			t.Fatalf("the cost of %d is %.9f, want %.9f", h, got, want)
		}
	}
}
