package server

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// BenchmarkPicture makes the picture of a namespace with as many leases and waiters as it can have, 10,000 of them
// waiters in lines of 1,000: the engine's survey and the JSON, once for all viewers.
func BenchmarkPicture(b *testing.B) {
	const waiters = 10_000
	d := newDoor(b)
	counts := engine.NamespaceCounts{Namespace: interlock.DefaultNamespace}
	count := func() {
		if _, err := d.shard.Survey(
			b.Context(), counts.Namespace, func(e *engine.Engine, _ engine.Time) bool { return counts.Look(e) },
		); err != nil {
			b.Fatal(err)
		}
	}
	submit := func(n int, key func(i int) string) {
		for i := range n {
			var id [16]byte
			binary.BigEndian.PutUint64(id[8:], uint64(i+1))
			id[0] = byte(n % 251)
			if err := d.shard.Submit(&engine.Acquire{
				Head: engine.Head{Namespace: interlock.DefaultNamespace}, ID: id, Agent: fmt.Sprint("agent-", i%1000),
				LeaseRequest: interlock.LeaseRequest{
					Claims:     []interlock.Claim{{Key: interlock.Key(key(i)), Mode: interlock.Exclusive}},
					Terms:      interlock.Terms{TTL: interlock.MaxTTL},
					OnConflict: interlock.Wait,
				},
			}); err != nil {
				b.Fatal(err)
			}
			if i%1000 == 999 {
				count() // it is behind them, so they are carried out
			}
		}
	}
	submit(interlock.MaxLeases-waiters, func(i int) string { return fmt.Sprint("account:", i) })
	submit(waiters, func(i int) string { return fmt.Sprint("account:", i/1000) })
	if count(); counts.Waiters != waiters || counts.Leases+counts.Waiters != interlock.MaxLeases {
		b.Fatalf("%+v", counts)
	}
	b.ReportAllocs()
	b.ResetTimer()
	size := 0
	for range b.N {
		event, _, err := d.server.picture(context.Background(), counts.Namespace, size)
		if err != nil {
			b.Fatal(err)
		}
		size = len(event)
	}
	b.ReportMetric(float64(size), "bytes")
}
