package filejournal

import (
	"fmt"
	"testing"

	"github.com/interlockdev/interlock/journal"
)

// BenchmarkAppend is one group of entries of 100 bytes, durable. Its cost is the disk's sync;
// the entries of a group are nearly free.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 64, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			j, err := Open(b.Context(), b.TempDir(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			group := make([][]byte, n)
			for i := range group {
				group[i] = make([]byte, 100)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := j.Append(b.Context(), j.at.index+1, group); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

// BenchmarkRead is a million entries of 100 bytes, checked and visited.
func BenchmarkRead(b *testing.B) {
	j, err := Open(b.Context(), b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	group := make([][]byte, 5000)
	for i := range group {
		group[i] = make([]byte, 100)
	}
	for range 200 {
		if err := j.Append(b.Context(), j.at.index+1, group); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.SetBytes(int64(100 * len(group) * 200))
	for b.Loop() {
		if err := j.Read(b.Context(), 1, func(journal.Entry) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// The bytes of an Append go from its arguments to the kernel through one buffer
// that is kept.
func TestAppendAllocatesNothing(t *testing.T) {
	j, err := Open(t.Context(), t.TempDir(), Options{SegmentBytes: 4 << 20, ReserveBytes: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	group := make([][]byte, 64)
	for i := range group {
		group[i] = make([]byte, 100)
	}
	ctx := t.Context()
	allocs := testing.AllocsPerRun(100, func() {
		if err := j.Append(ctx, j.at.index+1, group); err != nil {
			t.Fatal(err)
		}
	})
	if allocs >= 1 {
		t.Errorf("%v allocations for each append", allocs)
	}
}
