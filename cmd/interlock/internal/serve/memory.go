package serve

import (
	"log/slog"
	"math"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// memory watches how much of its share of the machine's memory the server uses.
//
//	0 ─────────── newcomers are admitted ────────── half ─── refused ──── all of it
//
// The relevant figure is the memory in use, as the garbage collector last found it. Newcomers
// are refused above a half: a snapshot of a large state is made of a second engine, which needs
// the other half for as long as it takes. The collector works harder near the whole.
type memory struct {
	most uint64 // what the process may use; 0: anything
	low  atomic.Bool

	live  func() uint64 // bytes in use after the last collection
	clean func()        // collects

	collected time.Time // when clean was last called
}

const (
	memoryShare = 75 // percent of the machine's or the container's memory
	flightShare = 8  // the part of that for requests and answers under way
	memoryEvery = 100 * time.Millisecond
	// cleanEvery is how often a server that refuses newcomers looks whether it still must:
	// without newcomers there is little garbage, and no collection.
	cleanEvery = 2 * time.Second
)

// watchMemory begins to watch. most is the memory limit of the process: 0 means a share of the
// machine's, a negative number no limit.
func watchMemory(most int64, log *slog.Logger) *memory {
	m := &memory{live: liveHeap, clean: runtime.GC}
	switch {
	case most > 0:
		m.most = uint64(most)
	case most == 0:
		m.most = defaultMemory()
	}
	if m.most == 0 {
		return m
	}
	if set := debug.SetMemoryLimit(-1); set == math.MaxInt64 {
		debug.SetMemoryLimit(int64(min(m.most, math.MaxInt64)))
	}
	log.Debug("memory is bounded", "bytes", m.most)
	go m.run()
	return m
}

// inFlight is the part of the memory that requests and answers under way may take; 0 is
// any.
func (m *memory) inFlight() int64 { return int64(min(m.most/flightShare, math.MaxInt64)) }

// run watches for as long as the process lives.
func (m *memory) run() {
	for now := range time.Tick(memoryEvery) {
		m.look(now)
	}
}

// look decides whether newcomers are admitted.
func (m *memory) look(now time.Time) {
	if m.low.Load() && now.Sub(m.collected) >= cleanEvery {
		m.clean()
		m.collected = now
	}
	live, half := m.live(), m.most/2
	switch {
	case live > half:
		m.low.Store(true)
	case live < half-half/8:
		m.low.Store(false)
	}
}

func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// defaultMemory is the process's share of the least that bounds it: the machine, its control group,
// its address space; or all of GOMEMLIMIT. 0 if none is known.
func defaultMemory() uint64 {
	if set := debug.SetMemoryLimit(-1); set > 0 && set < math.MaxInt64 {
		return uint64(set)
	}
	least := uint64(0)
	for _, n := range []uint64{
		machineMemory("/proc/meminfo"), groupMemory("/proc/self/cgroup", "/sys/fs/cgroup"), addressSpace(),
	} {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least / 100 * memoryShare
}

// machineMemory reads the size of the memory; 0 if it is not known.
func machineMemory(file string) uint64 {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			n, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 54)
			return n << 10
		}
	}
	return 0
}

// groupMemory reads the least limit of the control groups that the process is in; 0 if there
// is none. A container usually sees its own group at the root.
func groupMemory(self, root string) (least uint64) {
	read := func(file string) {
		text, _ := os.ReadFile(file)
		n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && n > 0 && n < 1<<60 && (least == 0 || n < least) {
			least = n
		}
	}
	text, _ := os.ReadFile(self)
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[1] == "": // version 2
			for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
				read(path.Join(root, at, "memory.max"))
				if at == "/" {
					break
				}
			}
		case parts[1] == "memory": // version 1
			read(path.Join(root, "memory", parts[2], "memory.limit_in_bytes"))
			read(path.Join(root, "memory", "memory.limit_in_bytes"))
		}
	}
	return least
}
