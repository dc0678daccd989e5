package client_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// BenchmarkStreamCycle acquires and releases, durably, over one connection on
// loopback, with client and server in this process.
func BenchmarkStreamCycle(b *testing.B) {
	for _, agents := range []int{1, 16, 64, 256} {
		for over, scheme := range transports {
			b.Run(fmt.Sprintf("agents=%d/over=%s", agents, over), func(b *testing.B) {
				w := onDisk(b)
				c, err := client.Dial(context.Background(), client.Config{Addrs: []string{scheme + w.listen()}, Agent: "bench"})
				if err != nil {
					b.Fatal(err)
				}
				defer closeClient(b, c)
				cycles(b, c, agents)
			})
		}
	}
}

// transports are the ways in which a session is carried, and what stands before an address
// for it.
var transports = map[string]string{"frames": "", "gRPC": "grpc://"}

// BenchmarkEmbeddedCycle is the same without a network in between.
func BenchmarkEmbeddedCycle(b *testing.B) {
	for _, agents := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("agents=%d", agents), func(b *testing.B) {
			w := onDisk(b)
			c, err := client.New(context.Background(), w.door.Dial, client.Config{Agent: "bench"})
			if err != nil {
				b.Fatal(err)
			}
			defer closeClient(b, c)
			cycles(b, c, agents)
		})
	}
}

func cycles(b *testing.B, c *client.Client, agents int) {
	ctx := context.Background()
	var all sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for agent := range agents {
		n := b.N / agents
		if agent < b.N%agents {
			n++
		}
		all.Go(func() {
			req := client.Request{
				Keys: []interlock.Key{interlock.Key(fmt.Sprintf("account:%d", agent))}, Flow: fmt.Sprintf("agent-%d", agent),
			}
			for range n {
				lease, err := c.Acquire(ctx, req)
				if err != nil {
					b.Error(err)
					return
				}
				if err := lease.Release(ctx, client.Outcome{}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
}
