package chain

import (
	"fmt"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// The cost of one entry.
func BenchmarkAdd(b *testing.B) {
	for _, size := range []int{100, 300, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			c, data := From(Start(0)), make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := range b.N {
				c.Add(journal.Entry{Index: interlock.Index(i + 1), Epoch: 1, Data: data})
			}
		})
	}
}
