package etcdtest

import (
	"context"
	"flag"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/history"
	"github.com/interlockdev/interlock/internal/test/history/traffic"
)

var historyTime = flag.Duration("history", 20*time.Second, "how long the agents of TestHistoryOfFailOvers work")

// While agents work, the active server is killed and stopped in turn, and the other one takes
// over. Every answer of both is compared with one history: nothing that was acknowledged is
// lost, nothing happens twice, and a request after the new owner's first answer gets none of
// the old one's.
func TestHistoryOfFailOvers(t *testing.T) {
	c := startCluster(t)
	active, standby := serveTwo(t, c.url("history"), c.url("history"))
	site := &traffic.Site{Patience: time.Second}
	site.Move(active.http, standby.http)
	record := history.NewRecorder()
	crowd, err := traffic.Start(t.Context(), site, record, 5)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), *historyTime)
	defer cancel()
	kills, stops := 0, 0
	for worked(ctx, record, 300) {
		if kills > stops {
			active.signal(syscall.SIGSTOP)
			stops++
			standby.becomes("ready")
			worked(ctx, record, 300)
			active.signal(syscall.SIGCONT)
		} else {
			active.kill()
			kills++
			standby.becomes("ready")
			worked(ctx, record, 300)
			active.start()
		}
		active.becomes("standby")
		active, standby = standby, active
	}
	if err := crowd.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	record.Verify(t)
	for kind, n := range map[string]int{"kill9": kills, "sigstop": stops, "failover": kills + stops} {
		if t.Attr("count.faults."+kind, fmt.Sprint(n)); n == 0 {
			t.Errorf("nothing was done: %s", kind)
		}
	}
	t.Attr("count.takeovers", fmt.Sprint(kills+stops))
}

// worked lets the agents begin so many operations more, and reports whether there is time
// for another fail-over.
func worked(ctx context.Context, record *history.Recorder, n int) bool {
	select {
	case <-record.After(n):
		return true
	case <-ctx.Done():
		return false
	}
}
