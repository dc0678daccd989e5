package shard

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/journal/memjournal"
)

// Durable throughput: one operation is an acquire and a release, each with its own
// answer, by callers that wait for it.
func BenchmarkDurable(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			j, err := filejournal.Open(b.Context(), b.TempDir(), filejournal.Options{})
			if err != nil {
				b.Fatal(err)
			}
			benchmarkCycles(b, j, callers, nil, nil)
		})
	}
}

// The same without a disk: what the shard and the engine cost.
func BenchmarkInMemory(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			benchmarkCycles(b, newNullJournal(b), callers, nil, nil)
		})
	}
}

func benchmarkCycles(b *testing.B, j journal.Journal, callers int, change func(*Config), beside func(*Shard)) {
	seen := new(sums)
	cfg := Config{Journal: j, SnapshotBytes: -1, Observer: seen}
	if change != nil {
		change(&cfg)
	}
	s, err := Open(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(background)
	if beside != nil {
		go beside(s)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for c := range callers {
		rounds := b.N / callers
		if c < b.N%callers {
			rounds++
		}
		wg.Go(func() {
			got := make(single, 1)
			claims := []interlock.Claim{{Key: interlock.Key(keyNumber(c)), Mode: interlock.Exclusive}}
			for range rounds {
				h := engine.Head{Namespace: "bench", From: got}
				if err := s.Submit(&engine.Acquire{Head: h, ID: newID(), Agent: "bench", LeaseRequest: interlock.LeaseRequest{
					Claims: claims,
				}}); err != nil {
					b.Error(err)
					return
				}
				lease := <-got
				if err := s.Submit(&engine.Release{Head: h, Lease: lease}); err != nil {
					b.Error(err)
					return
				}
				<-got
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	if n := seen.appends; n > 0 {
		b.ReportMetric(float64(seen.entries)/float64(n), "entries/append")
		b.ReportMetric(float64(seen.took.Microseconds())/float64(n), "us/append")
	}
}

// The same with a follower of the journal, and with a snapshot every 8 MiB: what others pay for it.
func BenchmarkFollowed(b *testing.B) {
	benchmarkWith(b, func(c *Config) {}, func(s *Shard) {
		s.Follow(b.Context(), Follower{Namespace: "bench"})
	})
}

func BenchmarkSnapshots(b *testing.B) {
	benchmarkWith(b, func(c *Config) { c.SnapshotBytes = 8 << 20 }, func(*Shard) {})
}

func benchmarkWith(b *testing.B, change func(*Config), beside func(*Shard)) {
	j, err := filejournal.Open(b.Context(), b.TempDir(), filejournal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	benchmarkCycles(b, j, 256, change, beside)
}

// How fast a start is: one operation is one entry. Of cycles, half of them are grants and
// half releases of one key; of leases, each is a grant of another key, and all are held.
func BenchmarkReplay(b *testing.B) {
	b.Run("cycles", func(b *testing.B) { benchmarkReplay(b, false) })
	b.Run("leases", func(b *testing.B) { benchmarkReplay(b, true) })
}

func benchmarkReplay(b *testing.B, held bool) {
	j, err := filejournal.Open(b.Context(), b.TempDir(), filejournal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s, err := Open(b.Context(), Config{Journal: j, SnapshotBytes: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(background)
	const burst = 1000
	got := make(single, 2*burst)
	for n := 0; n < b.N; {
		sent := n
		for range burst {
			h := engine.Head{Namespace: "bench", From: got}
			take := &engine.Acquire{Head: h, ID: newID(), Agent: "bench", LeaseRequest: interlock.LeaseRequest{
				Terms:  interlock.Terms{TTL: interlock.MaxTTL},
				Claims: []interlock.Claim{{Key: "account:12345", Mode: interlock.Exclusive}},
			}}
			cmds := []engine.Command{take, &engine.Release{Head: h, Lease: take.ID}}
			if held {
				take.Claims[0].Key = interlock.Key(keyNumber(n))
				cmds = cmds[:1]
			}
			if err := s.Submit(cmds...); err != nil {
				b.Fatal(err)
			}
			n += len(cmds)
		}
		for range n - sent {
			<-got
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	r, err := s.replay(b.Context(), s.At().Index, ahead, new(links))
	if err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(r.entries)/b.Elapsed().Seconds(), "entries/s")
	b.ReportMetric(float64(r.bytes)/b.Elapsed().Seconds()/1e6, "MB/s")
}

// The duration of a tenant's call, alone and beside another tenant that floods the shard
// through 256 goroutines, each with 16 commands on their way: one operation is an acquire and a
// release.
func BenchmarkBeside(b *testing.B) {
	for _, noise := range []int{0, 256} {
		name := "alone"
		if noise > 0 {
			name = "beside"
		}
		b.Run(name+"/in-memory", func(b *testing.B) { benchmarkBeside(b, newNullJournal(b), noise) })
		b.Run(name+"/durable", func(b *testing.B) {
			j, err := filejournal.Open(b.Context(), b.TempDir(), filejournal.Options{})
			if err != nil {
				b.Fatal(err)
			}
			benchmarkBeside(b, j, noise)
		})
	}
}

func benchmarkBeside(b *testing.B, j journal.Journal, noise int) {
	s, err := Open(b.Context(), Config{Journal: j, SnapshotBytes: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(background)
	var stop atomic.Bool
	var noisy sync.WaitGroup
	var others atomic.Int64
	for n := range noise {
		noisy.Go(func() {
			const window = 16
			answers := make(counter, 2*window)
			cmds := make([]engine.Command, 0, 2*window)
			for !stop.Load() {
				cmds = cmds[:0]
				for k := range window {
					h := engine.Head{Namespace: "noisy", From: answers}
					id := newID()
					claims := []interlock.Claim{{Key: interlock.Key(keyNumber(n*window + k)), Mode: interlock.Exclusive}}
					cmds = append(cmds, &engine.Acquire{Head: h, ID: id, Agent: "bench", LeaseRequest: interlock.LeaseRequest{
						Claims: claims,
					}}, &engine.Release{Head: h, Lease: id})
				}
				if err := s.Submit(cmds...); err != nil {
					b.Error(err)
					return
				}
				for range cmds {
					<-answers
				}
				others.Add(window)
			}
		})
	}
	got := make(single, 1)
	claims := []interlock.Claim{{Key: "account:12345", Mode: interlock.Exclusive}}
	took := make([]time.Duration, 0, b.N)
	b.ResetTimer()
	for range b.N {
		began := time.Now()
		h := engine.Head{Namespace: "quiet", From: got}
		if err := s.Submit(&engine.Acquire{Head: h, ID: newID(), Agent: "bench", LeaseRequest: interlock.LeaseRequest{
			Claims: claims,
		}}); err != nil {
			b.Fatal(err)
		}
		if err := s.Submit(&engine.Release{Head: h, Lease: <-got}); err != nil {
			b.Fatal(err)
		}
		<-got
		took = append(took, time.Since(began))
	}
	b.StopTimer()
	stop.Store(true)
	noisy.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
	b.ReportMetric(float64(others.Load())/b.Elapsed().Seconds(), "others/s")
}

// The throughput of a mailbox: heartbeats, many at once, as a stream submits them.
func BenchmarkHeartbeats(b *testing.B) {
	s, err := Open(b.Context(), Config{Journal: newNullJournal(b), SnapshotBytes: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(background)
	var id interlock.SessionID
	id[0] = 1
	eff, _, err := s.Do(
		b.Context(), &engine.OpenSession{Head: engine.Head{Namespace: "bench"}, ID: id, Agent: "bench", TTL: time.Hour},
	)
	if err != nil || eff.Outcome != engine.Done {
		b.Fatal(err, prose.Sentence(eff.Message))
	}
	const inFlight = 256
	answers := make(counter, 2*inFlight)
	cmds := make([]engine.Command, inFlight)
	beats := make([]engine.Heartbeat, inFlight)
	for i := range beats {
		beats[i].Head = engine.Head{Namespace: "bench", Session: id, From: answers}
		cmds[i] = &beats[i]
	}
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += inFlight {
		if err := s.Submit(cmds...); err != nil {
			b.Fatal(err)
		}
		for range inFlight {
			<-answers
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
}

type single chan interlock.LeaseID

func (c single) Deliver(eff *engine.Effect, _ interlock.At) {
	if eff.Outcome == engine.Refused {
		panic(prose.Sentence(eff.Message))
	}
	c <- eff.Lease.ID
}

type counter chan struct{}

func (c counter) Deliver(*engine.Effect, interlock.At) { c <- struct{}{} }

type sums struct {
	appends, entries int
	took             time.Duration
}

func (s *sums) Committed([]record.Event) {}
func (s *sums) Lag(time.Duration)        {}
func (s *sums) Saved(time.Duration)      {}
func (s *sums) Appended(d time.Duration, entries, _ int) {
	s.appends++
	s.entries += entries
	s.took += d
}

// nullJournal forgets what is appended, so that a benchmark of millions of
// commands measures the shard and not the memory.
type nullJournal struct {
	journal.Journal
	tail interlock.Index
}

func newNullJournal(tb testing.TB) *nullJournal {
	j, err := new(memjournal.Store).Open(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return &nullJournal{Journal: j, tail: j.Tail()}
}

func (j *nullJournal) Append(_ context.Context, first interlock.Index, entries [][]byte) error {
	if first != j.tail+1 {
		return journal.ErrMisuse
	}
	j.tail += interlock.Index(len(entries))
	return nil
}
