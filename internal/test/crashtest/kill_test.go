package crashtest

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/interlockdev/interlock/internal/launch"
	"github.com/interlockdev/interlock/internal/test/launchtest"
)

// cycles is how often the server is killed, here and at least in the history of kills.
const cycles = 50

// tiny makes the journal's files so small that every cycle fills some, takes
// snapshots and truncates.
var tiny = []string{"--segment-bytes=16384", "--snapshot-bytes=32768", "--keep-bytes=-1"}

// Fifteen clients work until the server is killed in the middle of it, fifty
// times over.
func TestKillUnderLoad(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	crew := newCrew(t, 1, cycles)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range cycles {
		cfg := launch.Config{DataDir: dir}
		if i%5 != 0 {
			cfg.Args = tiny
		}
		server := launchtest.Start(t, cfg)
		crew.settle(ctx, server)
		crew.work(ctx, server, 20+random.IntN(400), server.Kill)
	}
	server := launchtest.Start(t, launch.Config{DataDir: dir})
	crew.settle(ctx, server)
	if err := server.Stop(ctx); err != nil {
		t.Error(err)
	}
	if out, err := exec.Command(launchtest.Binary(t), "admin", "journal", "verify", dir).CombinedOutput(); err != nil {
		t.Errorf("journal verify: %v\n%s", err, out)
	}
	t.Attr("count.faults.kill9", fmt.Sprint(cycles))
	t.Attr("count.crash_recoveries", fmt.Sprint(cycles))
	t.Logf("%d cycles, %d acknowledgements, %d fences, %d leases held to the end, %d places in line checked",
		cycles, crew.site.acks.Load(), len(crew.ledger.fences), len(crew.ledger.held), crew.line.seen)
	if crew.line.seen == 0 || len(crew.ledger.fences) < cycles {
		t.Error("too little happened for this test to mean anything")
	}
}

// A server that is asked to stop stops regardless of its clients, and the next one continues.
func TestStopUnderLoad(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	crew := newCrew(t, 2, 10)
	for range 3 {
		server := launchtest.Start(t, launch.Config{DataDir: dir})
		crew.settle(ctx, server)
		crew.work(ctx, server, 200, func() {
			if err := server.Stop(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	crew.settle(ctx, launchtest.Start(t, launch.Config{DataDir: dir}))
}
