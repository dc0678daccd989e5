package engine_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// BenchmarkTask submits a task, hands it out and acknowledges it, while others wait.
func BenchmarkTask(b *testing.B) {
	for _, backlog := range []int{0, 100_000} {
		b.Run("backlog="+strconv.Itoa(backlog), func(b *testing.B) {
			s := newStand()
			worker := s.session(b)
			s.step(&engine.SetQueue{Head: s.head(worker), Queue: interlock.TaskQueue{Name: "q"}})
			submit := func(i int) {
				s.step(&engine.Submit{Head: s.head(worker), Task: engine.TaskSpec{
					ID: counted(uint64(1<<40 + i)), TaskSpec: interlock.TaskSpec{
						Queue: "q", Payload: []byte(`{"n":1}`),
						Claims: []interlock.Claim{{Key: interlock.Key("customer:" + strconv.Itoa(i%50_000))}},
					},
				}})
			}
			for i := range backlog {
				submit(i)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				submit(backlog + i)
				s.step(&engine.Pull{
					Head: s.head(worker), ID: counted(1), Queue: "q", Max: 1, Leases: [][16]byte{counted(uint64(1<<41 + i))},
				})
				s.want(b, engine.Granted)
				s.step(&engine.Ack{Head: s.head(worker), Lease: s.out.Effects[0].Handed[0].Lease.ID})
			}
			s.want(b, engine.Done)
			perSecond(b, b.N)
		})
	}
}

// BenchmarkMemoryPerTask reports what a task that waits costs besides its payload and
// its key, dormant or behind a holder.
func BenchmarkMemoryPerTask(b *testing.B) {
	const tasks = 200_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for range b.N {
		s := newStand()
		worker := s.session(b)
		s.step(&engine.SetQueue{Head: s.head(worker), Queue: interlock.TaskQueue{Name: "q", Backoff: time.Second}})
		before := heap()
		for i := range tasks {
			s.step(&engine.Submit{Head: s.head(worker), Task: engine.TaskSpec{
				ID: counted(uint64(1<<40 + i)), TaskSpec: interlock.TaskSpec{
					Queue: "q", Claims: []interlock.Claim{{Key: interlock.Key("customer:" + strconv.Itoa(i))}},
				},
			}})
		}
		b.ReportMetric(float64(heap()-before)/tasks, "B/task")
		s.want(b, engine.Done)
	}
}

// BenchmarkBesideTasks acquires and releases a key while tasks are parked, on that very
// key or each on one of its own; with a worker, one is handed out and acknowledged in
// each round, and another one submitted. None of it may depend on how many there are.
func BenchmarkBesideTasks(b *testing.B) {
	for name, keys := range map[string]int{"one": 1, "own": 1 << 40} {
		for _, worked := range []bool{false, true} {
			for _, parked := range []int{1, 1_000, 100_000} {
				b.Run(fmt.Sprintf("key=%s/worker=%v/parked=%d", name, worked, parked), func(b *testing.B) {
					s := newStand()
					id := s.session(b)
					s.step(&engine.SetQueue{Head: s.head(id), Queue: interlock.TaskQueue{Name: "q"}})
					submit := func(i int) {
						s.step(&engine.Submit{Head: s.head(id), Task: engine.TaskSpec{
							ID: counted(uint64(1<<40 + i)), TaskSpec: interlock.TaskSpec{
								Queue: "q", Claims: []interlock.Claim{{Key: interlock.Key("customer:" + strconv.Itoa(i%keys))}},
							},
						}})
					}
					for i := range parked {
						submit(i)
					}
					b.ReportAllocs()
					b.ResetTimer()
					for i := range b.N {
						s.acquire(id, "customer:0")
						s.want(b, engine.Granted)
						s.step(&engine.Release{Head: s.head(id), Lease: s.out.Effects[0].Lease.ID})
						if worked {
							s.step(&engine.Pull{
								Head: s.head(id), ID: counted(1), Queue: "q", Max: 1, Leases: [][16]byte{counted(uint64(1<<41 + i))},
							})
							s.want(b, engine.Granted)
							s.step(&engine.Ack{Head: s.head(id), Lease: s.out.Effects[0].Handed[0].Lease.ID})
							submit(parked + i)
						}
					}
					perSecond(b, b.N)
				})
			}
		}
	}
}
