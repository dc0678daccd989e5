package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/shard"
)

// BenchmarkIdleReaders measures a busy tenant's cost of readers of other tenants' events that
// have nothing to read. Two servers stand side by side; one of them has 1,000 readers, of 20
// other tenants, half of them of events and half of documents, each on a connection of its own.
// The busy tenant has 16 callers, each with an acquire and a release at a time. It works at the
// one server and at the other in turn, so that whatever else the machine does falls on both.
// ratio is the throughput beside the readers by the throughput without, the median of all
// pairs; reader-bytes is the growth of the process's memory for each of them, the end of the
// test included.
func BenchmarkIdleReaders(b *testing.B) {
	b.Run("in-memory", func(b *testing.B) {
		benchmarkIdleReaders(b, func() journal.Journal {
			j, err := new(memjournal.Store).Open(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			return j
		})
	})
	b.Run("durable", func(b *testing.B) {
		benchmarkIdleReaders(b, func() journal.Journal {
			j, err := filejournal.Open(b.Context(), b.TempDir(), filejournal.Options{})
			if err != nil {
				b.Fatal(err)
			}
			return j
		})
	})
}

const (
	idleReaders = 1000
	idleTenants = 20
	busyCallers = 16
	idleSlice   = 50 * time.Millisecond
)

func benchmarkIdleReaders(b *testing.B, open func() journal.Journal) {
	alone, beside := newBusyTenant(b, open()), newBusyTenant(b, open())
	before := memoryInUse()
	for i := range idleReaders {
		beside.addReader(b, i)
	}
	grown := float64(memoryInUse()) - float64(before)
	alone.work(b, idleSlice)
	beside.work(b, idleSlice)
	var ratios, rates []float64
	b.ResetTimer()
	for i := range b.N {
		first, second := alone, beside
		if i%2 == 1 {
			first, second = beside, alone
		}
		took := map[*busyTenant]float64{}
		took[first] = first.work(b, idleSlice)
		took[second] = second.work(b, idleSlice)
		ratios, rates = append(ratios, took[beside]/took[alone]), append(rates, took[alone])
	}
	b.StopTimer()
	slices.Sort(ratios)
	slices.Sort(rates)
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(rates[len(rates)/2], "cycles/s")
	b.ReportMetric(grown/idleReaders, "reader-bytes")
}

// memoryInUse returns the bytes of the process's heap and stacks.
func memoryInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// busyTenant is a server, and its clients.
type busyTenant struct {
	clients []*leanClient
	addr    string
}

func newBusyTenant(b *testing.B, j journal.Journal) *busyTenant {
	b.Helper()
	obs := NewObserver(nil, nil)
	sh, err := shard.Open(b.Context(), shard.Config{Journal: j, Observer: obs, SnapshotBytes: -1})
	if err != nil {
		b.Fatal(err)
	}
	s, err := New(Config{Shard: sh, Observer: obs})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := s.HTTPServer()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	b.Cleanup(func() {
		_ = srv.Close()
		<-served
		_ = sh.Close(context.Background())
	})
	t := &busyTenant{addr: l.Addr().String()}
	for range busyCallers {
		c, err := dialLean(t.addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.conn.Close() })
		t.clients = append(t.clients, c)
	}
	return t
}

// addReader connects a reader of another tenant, and returns when it is answered. Later data, a
// few bytes, stays in the connection.
func (t *busyTenant) addReader(b *testing.B, i int) {
	b.Helper()
	conn, err := net.Dial("tcp", t.addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	path := "/v1/events?follow=true"
	if i%2 == 1 {
		path = "/v1/watch"
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nInterlock-Namespace: tenant-%d\r\n\r\n", path, i%idleTenants)
	head := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, head); err != nil || !bytes.HasSuffix(head, []byte("200")) {
		b.Fatalf("reader %d: %q, %v", i, head, err)
	}
}

// work is the busy tenant at work for a while. It returns the cycles per second.
func (t *busyTenant) work(b *testing.B, d time.Duration) float64 {
	var wg sync.WaitGroup
	cycles := make([]int, len(t.clients))
	began := time.Now()
	for i, c := range t.clients {
		body := fmt.Appendf(nil, `{"agent":"bench-%d","claims":[{"key":"account:%d"}]}`, i, i)
		wg.Go(func() {
			for time.Since(began) < d {
				answer, err := c.post("/v1/leases", body)
				if err != nil {
					b.Error(err)
					return
				}
				_, rest, ok := bytes.Cut(answer, []byte(`"id":"`))
				if !ok || len(rest) < 34 {
					b.Errorf("no lease in %s", answer)
					return
				}
				if _, err := c.post("/v1/leases/"+string(rest[:34])+"/release", []byte(`{}`)); err != nil {
					b.Error(err)
					return
				}
				cycles[i]++
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range cycles {
		total += n
	}
	return float64(total) / time.Since(began).Seconds()
}
