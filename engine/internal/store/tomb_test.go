package store

import (
	"encoding/binary"
	"testing"

	"github.com/interlockdev/interlock/engine/internal/collection"
)

// The request that ended last is found by its id, also where numbers wrap around, and forgotten
// ones are not.
func TestTombs(t *testing.T) {
	id := func(i int) (id [16]byte) { // two each with one hash
		binary.LittleEndian.PutUint64(id[i%2*8:], uint64(i/2))
		binary.LittleEndian.PutUint64(id[8-i%2*8:], 1<<60)
		return id
	}
	var all tombstones
	const pushed = 4*rememberedEnds + 7
	for i := range pushed {
		all.push(collection.HashID(id(i)), tombstone{ID: id(i), Num: uint64(i)})
		if i%1021 == 0 || i < 100 || i > pushed-100 {
			oldest := max(0, i+1-rememberedEnds)
			if got := all.At(0).Num; all.Len() != i+1-oldest || got != uint64(oldest) {
				t.Fatalf("after %d, %d are remembered, the oldest is %d", i, all.Len(), got)
			}
			for _, j := range []int{oldest - 2, oldest - 1, oldest, oldest + 1, (oldest + i) / 2, i, i + 1} {
				if j < 0 {
					continue
				}
				wanted := id(j)
				x := all.find(collection.HashID(wanted), &wanted)
				if known := oldest <= j && j <= i; (x != nil) != known || known && x.Num != uint64(j) {
					t.Fatalf("after %d, %d is %+v", i, j, x)
				}
			}
		}
	}
}
