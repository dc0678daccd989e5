package sim_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/search"
	"github.com/interlockdev/interlock/sim"
)

// TestWorlds runs the seeds that every change has to survive.
func TestWorlds(t *testing.T) {
	from, to := search.Seeds(t, 1, 8, 150)
	totals, failed := sim.RunMany(from, func(next uint64) bool { return next < to }, sim.Options{})
	t.Logf("\n%v", totals)
	count := func(what string, n int) { t.Attr("count."+what, strconv.Itoa(n)) }
	count("seeds", totals.Seeds)
	count("commands", totals.Commands)
	count("crash_recoveries", totals.Recoveries)
	count("simulated_seconds", int(totals.Simulated.Seconds()))
	count("world_unknowns", totals.GivenUp)
	inOneWord := strings.NewReplacer(" ", "_", ",", "", ":", "")
	for kind, n := range totals.Faults {
		count("faults."+inOneWord.Replace(kind), n)
	}
	for _, err := range failed {
		t.Errorf("%v; repeat it with: go run ./cmd/interlock-sim -seed N", err)
	}
	if testing.Short() {
		return
	}
	if totals.Commands < 750_000 || totals.Recoveries < 750 {
		t.Errorf("only %d commands and %d recoveries", totals.Commands, totals.Recoveries)
	}
	for _, kind := range []string{
		"forwarded", "shard given up", "takeover", "takeover between two attempts", "cut off from the engine",
		"late request carried out", "late request refused", "tail lost", "lost tail noticed by its owner",
	} {
		if totals.Faults[kind] < 10 {
			t.Errorf("%s: only %d times", kind, totals.Faults[kind])
		}
	}
}

// TestOneSeedIsOneRun writes a seed's story twice, with one server and with several, on a disk and in an engine, and
// beside other runs: it is the same to the letter, and another seed's is not.
func TestOneSeedIsOneRun(t *testing.T) {
	tell := func(seed uint64) (string, uint64) {
		var b bytes.Buffer
		r := sim.Run(seed, sim.Options{Commands: 800, Story: &b})
		if r.Err != nil {
			t.Error(r.Err)
		}
		return b.String(), r.Hash
	}
	seen, several := map[uint64]bool{}, false
	for seed := range uint64(10) {
		type told struct {
			story string
			hash  uint64
		}
		beside := make(chan told)
		go func() {
			story, hash := tell(seed)
			beside <- told{story, hash}
		}()
		story, hash := tell(seed)
		if other := <-beside; other.story != story || other.hash != hash {
			t.Errorf("two runs of seed %d differ: %x and %x", seed, hash, other.hash)
		}
		if seen[hash] {
			t.Errorf("seed %d has the hash of another one", seed)
		}
		seen[hash] = true
		if !strings.Contains(story, "owns shard 0") {
			t.Errorf("the story of seed %d names no owner of shard 0", seed)
		}
		several = several || strings.Contains(story, "host 2 owns shard 1")
	}
	if !several {
		t.Error("no seed has several shards with several owners")
	}
}

func BenchmarkWorld(b *testing.B) {
	for i := range b.N {
		if r := sim.Run(uint64(i+1), sim.Options{}); r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}
