package client_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// dialBench connects over a gRPC stream on loopback.
func dialBench(b *testing.B, addr, agent string) *client.Client {
	c, err := client.Dial(context.Background(), client.Config{Addrs: []string{addr}, Agent: agent})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { closeClient(b, c) })
	return c
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkTasks submits tasks, each for a key of its own, and a worker does them: durably,
// over two gRPC streams on loopback, with clients and server in this process.
func BenchmarkTasks(b *testing.B) {
	for _, load := range []struct{ submitters, concurrency int }{{1, 1}, {64, 64}, {512, 256}} {
		b.Run(fmt.Sprintf("submitters=%d/concurrency=%d", load.submitters, load.concurrency), func(b *testing.B) {
			w := onDisk(b)
			addr := w.listen()
			submitter, worker := dialBench(b, addr, "submitter"), dialBench(b, addr, "worker")
			ctx, cancel := context.WithCancel(context.Background())
			if err := submitter.SetQueue(ctx, interlock.TaskQueue{Name: "bench"}); err != nil {
				b.Fatal(err)
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			finished, ended := make(chan struct{}), make(chan error, 1)
			b.ReportAllocs()
			b.ResetTimer()
			go func() {
				ended <- worker.Work(ctx, client.Worker{
					Queue: "bench", Concurrency: load.concurrency,
					Handle: func(context.Context, *client.Job) (client.Done, error) {
						if left.Add(-1) == 0 {
							close(finished)
						}
						return client.Done{}, nil
					},
					OnError: func(_ *client.Job, err error) { b.Error(err) },
				})
			}()
			var all sync.WaitGroup
			for i := range load.submitters {
				n := b.N / load.submitters
				if i < b.N%load.submitters {
					n++
				}
				all.Go(func() {
					spec := client.TaskSpec{Queue: "bench", Kind: "letter", Payload: map[string]int{"customer": i}}
					for j := range n {
						spec.Claims = []interlock.Claim{{Key: interlock.Key(fmt.Sprintf("customer:%d-%d", i, j%1000))}}
						if _, err := submitter.Submit(ctx, spec); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			<-finished
			cancel()
			if err := <-ended; err != nil { // after the last acknowledgement
				b.Error(err)
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

// BenchmarkAsk measures one agent that asks a writer that only counts, durably, over two
// streams.
func BenchmarkAsk(b *testing.B) {
	w := onDisk(b)
	addr := w.listen()
	asker, writer := dialBench(b, addr, "asker"), dialBench(b, addr, "writer")
	ctx, cancel := context.WithCancel(context.Background())
	if err := asker.SetQueue(ctx, interlock.TaskQueue{Name: "bench"}); err != nil {
		b.Fatal(err)
	}
	if err := asker.SetPattern(
		ctx, interlock.Pattern{Name: "account", Shape: "account:{id}", Write: interlock.WriteSingle, WriterQueue: "bench"},
	); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- writer.Work(ctx, client.Worker{Queue: "bench", Concurrency: 8, Handle: func(_ context.Context, job *client.Job) (client.Done, error) {
			key := job.Lease().Key()
			return client.Done{
				Result: job.Attempt(), Writes: []interlock.Write{client.Put(key, job.Task().Payload)},
				Reads: client.Seen(job.Document(key)),
			}, nil
		}})
	}()
	took := make([]time.Duration, 0, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		began := time.Now()
		if _, err := asker.Ask(ctx, client.Message{Key: interlock.Key(fmt.Sprint("account:", i%16)), Body: i}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	b.StopTimer()
	b.ReportMetric(float64(median(took))/1e6, "median-ms")
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}

// BenchmarkHandOff is the time from the release of a key to the task that waits for it in a
// worker's hands.
func BenchmarkHandOff(b *testing.B) {
	w := onDisk(b)
	addr := w.listen()
	agent, worker := dialBench(b, addr, "agent"), dialBench(b, addr, "worker")
	ctx, cancel := context.WithCancel(context.Background())
	if err := agent.SetQueue(ctx, interlock.TaskQueue{Name: "bench"}); err != nil {
		b.Fatal(err)
	}
	arrived, ended := make(chan time.Time, 1), make(chan error, 1)
	go func() {
		ended <- worker.Work(ctx, client.Worker{Queue: "bench", Concurrency: 8, Handle: func(context.Context, *client.Job) (client.Done, error) {
			arrived <- time.Now()
			return client.Done{}, nil
		}})
	}()
	took := make([]time.Duration, 0, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		lease, err := agent.Acquire(ctx, exclusively("k"))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := agent.Submit(ctx, client.TaskSpec{Queue: "bench", Claims: []interlock.Claim{{Key: "k"}}}); err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		if err := lease.Release(ctx, client.Outcome{}); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-arrived).Sub(began))
	}
	b.StopTimer()
	b.ReportMetric(float64(median(took))/1e6, "median-ms")
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
