package engine_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// The benchmarks drive the engine alone: no journal, no goroutine but one.
// ns/op is the time of one pass of the loop; commands/s counts commands.

// stand is an engine with an Output and commands that are used again and again, as
// a shard and the sessions before it do.
type stand struct {
	e   *engine.Engine
	out engine.Output
	now engine.Time
	ids uint64

	get  engine.Acquire
	give engine.Release
}

func newStand() *stand {
	s := &stand{e: engine.New(), now: begin}
	s.step(&engine.Recover{Head: engine.Head{At: s.now}, Epoch: 1})
	return s
}

func (s *stand) step(cmd engine.Command) {
	s.out.Entry, s.out.Events, s.out.Effects = s.out.Entry[:0], s.out.Events[:0], s.out.Effects[:0]
	s.e.Step(cmd, &s.out)
}

func (s *stand) head(id interlock.SessionID) engine.Head {
	return engine.Head{At: s.now, Namespace: "bench", Session: id, From: s}
}

func (s *stand) id() [16]byte {
	s.ids++
	return counted(s.ids)
}

func (s *stand) session(tb testing.TB) interlock.SessionID {
	id := interlock.SessionID(s.id())
	s.step(&engine.OpenSession{Head: s.head(interlock.SessionID{}), ID: id, Agent: "agent", TTL: interlock.MaxTTL})
	s.want(tb, engine.Done)
	return id
}

func (s *stand) want(tb testing.TB, outcome interlock.Outcome) {
	if len(s.out.Effects) == 0 || s.out.Effects[0].Outcome != outcome {
		tb.Fatalf("want %v, got %+v", outcome, s.out.Effects)
	}
}

// acquire asks for an exclusive key and returns the request's id.
func (s *stand) acquire(session interlock.SessionID, key interlock.Key) [16]byte {
	return s.ask(session, []interlock.Claim{{Key: key, Mode: interlock.Exclusive}})
}

// ask is acquire for claims that the caller does not change any more: the engine keeps
// them.
func (s *stand) ask(session interlock.SessionID, claims []interlock.Claim) [16]byte {
	s.get = engine.Acquire{
		Head: s.head(session), ID: s.id(), LeaseRequest: interlock.LeaseRequest{
			Claims: claims,
			Terms:  interlock.Terms{TTL: interlock.MaxTTL}, OnConflict: interlock.Wait,
		},
		Attach: true,
	}
	s.step(&s.get)
	return s.get.ID
}

func (s *stand) release(session interlock.SessionID, id [16]byte) {
	s.give = engine.Release{Head: s.head(session), Lease: interlock.LeaseID(id)}
	s.step(&s.give)
}

// overFull is how many requests that are over a namespace remembers, and a few more:
// from then on each new one takes the place of another.
const overFull = 66_000

// settle makes a session take and release keys until all structures have grown to their size.
func (s *stand) settle(session interlock.SessionID, claims [][]interlock.Claim) {
	for i := range overFull {
		s.release(session, s.ask(session, claims[i%len(claims)]))
	}
}

// distinct makes exclusive claims on keys of their own.
func distinct(n int, format string) [][]interlock.Claim {
	claims := make([][]interlock.Claim, n)
	for i := range claims {
		claims[i] = []interlock.Claim{{Key: interlock.Key(fmt.Sprintf(format, i)), Mode: interlock.Exclusive}}
	}
	return claims
}

func perSecond(b *testing.B, commands int) {
	b.ReportMetric(float64(commands)/b.Elapsed().Seconds(), "commands/s")
}

// BenchmarkAcquireRelease acquires and releases one key after another while others are held.
func BenchmarkAcquireRelease(b *testing.B) { benchmarkCycle(b, "order:%d/lines") }

// BenchmarkAcquireReleasePlain is the same for keys without ancestors.
func BenchmarkAcquireReleasePlain(b *testing.B) { benchmarkCycle(b, "order:%d") }

func benchmarkCycle(b *testing.B, format string) {
	for _, resident := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("resident=%d", resident), func(b *testing.B) {
			s := newStand()
			id := s.session(b)
			// One lease less than a namespace may have.
			for i := range resident - 1 {
				s.acquire(id, interlock.Key(fmt.Sprintf("held-"+format, i)))
				s.want(b, engine.Granted)
			}
			claims := distinct(1024, format)
			s.settle(id, claims)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				s.release(id, s.ask(id, claims[i%len(claims)]))
			}
			s.want(b, engine.Done)
			perSecond(b, 2*b.N)
		})
	}
}

// BenchmarkReacquire asks again for a key that the same flow holds, beside others.
func BenchmarkReacquire(b *testing.B) {
	for _, resident := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("resident=%d", resident), func(b *testing.B) {
			s := newStand()
			id := s.session(b)
			claims := distinct(resident, "account:%d")
			for _, c := range claims {
				s.ask(id, c)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				s.ask(id, claims[i%len(claims)])
			}
			s.want(b, engine.Granted)
			perSecond(b, b.N)
		})
	}
}

// BenchmarkHandOff releases a key to the first of a line, and the former holder
// stands in line again.
func BenchmarkHandOff(b *testing.B) {
	for _, waiters := range []int{1, 10, 1_000} {
		b.Run(fmt.Sprintf("waiters=%d", waiters), func(b *testing.B) {
			s := newStand()
			type place struct {
				session interlock.SessionID
				lease   [16]byte
			}
			line := make([]place, waiters+1)
			claims := distinct(1, "account:%d/balance")[0]
			for i := range line {
				line[i].session = s.session(b)
				line[i].lease = s.ask(line[i].session, claims)
			}
			pass := func(i int) {
				p := &line[i%len(line)]
				s.release(p.session, p.lease)
				p.lease = s.ask(p.session, claims)
			}
			settled := overFull / len(line) * len(line)
			for i := range settled {
				pass(i)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				pass(i)
			}
			s.want(b, engine.Queued)
			perSecond(b, 2*b.N)
		})
	}
}

// BenchmarkHeartbeat keeps 100,000 leases of 1,000 sessions alive.
func BenchmarkHeartbeat(b *testing.B) {
	s := newStand()
	sessions := make([]interlock.SessionID, 1_000)
	for i := range sessions {
		sessions[i] = s.session(b)
		for k := range 100 {
			s.acquire(sessions[i], interlock.Key(fmt.Sprintf("file:%d/%d", i, k)))
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		s.now += engine.Time(time.Millisecond)
		s.step(&engine.Heartbeat{Head: s.head(sessions[i%len(sessions)])})
		if len(s.out.Entry) > 0 {
			b.Fatal("a heartbeat was journaled")
		}
	}
	perSecond(b, b.N)
}

// BenchmarkMemoryPerLease reports what one held lease on a key of its own costs,
// BenchmarkMemoryPerWaiter what one waiter for a common key costs.
func BenchmarkMemoryPerLease(b *testing.B) {
	const leases = 200_000
	for range b.N {
		s := newStand()
		id := s.session(b)
		before := heap()
		for i := range leases {
			s.acquire(id, interlock.Key(fmt.Sprintf("account:%d", i)))
		}
		s.want(b, engine.Granted)
		b.ReportMetric(float64(heap()-before)/leases, "B/lease")
		runtime.KeepAlive(s)
	}
}

func BenchmarkMemoryPerWaiter(b *testing.B) {
	const waiters = 50_000 // of a thousand sessions, in ten lines
	for range b.N {
		s := newStand()
		sessions := make([]interlock.SessionID, 1_000)
		for i := range sessions {
			sessions[i] = s.session(b)
		}
		holder := s.session(b)
		keys := make([]interlock.Key, 10)
		for i := range keys {
			keys[i] = interlock.Key(fmt.Sprintf("account:%d", i))
			s.acquire(holder, keys[i])
		}
		before := heap()
		for i := range waiters {
			// Each waits with a flow of its own.
			c := &engine.Acquire{
				Head: s.head(sessions[i%len(sessions)]), ID: s.id(), LeaseRequest: interlock.LeaseRequest{
					Flow:   fmt.Sprintf("flow-%d", i/len(sessions)),
					Claims: []interlock.Claim{{Key: keys[i%len(keys)], Mode: interlock.Exclusive}}, OnConflict: interlock.Wait,
				},
				Attach: true,
			}
			s.step(c)
		}
		s.want(b, engine.Queued)
		b.ReportMetric(float64(heap()-before)/waiters, "B/waiter")
		runtime.KeepAlive(s)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
