package remotetest

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/history"
	"github.com/interlockdev/interlock/internal/test/history/traffic"
)

var historyTime = flag.Duration("history", 20*time.Second, "how long the agents of HistoryOfFailOvers work")

// HistoryOfFailOvers lets agents work, while the active server is killed and stopped in turn, and the other one
// takes over. Every answer of both is compared with one history: nothing that was acknowledged is
// lost, nothing happens twice, and a request after the new owner's first answer gets none of
// the old one's.
func HistoryOfFailOvers(t *testing.T, e Engine) {
	active, standby := serveTwo(t, e.URL("history"), e.URL("history"))
	site := &traffic.Site{Patience: time.Second}
	site.Move(active.http, standby.http)
	record := history.NewRecorder()
	crowd, err := traffic.Start(t.Context(), site, record, 5, traffic.Full)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), *historyTime)
	defer cancel()
	kills, stops := 0, 0
	// Each fault comes once at least, also on a machine on which that takes longer than the agents should work.
	within := func() context.Context {
		if stops == 0 {
			return t.Context()
		}
		return ctx
	}
	for worked(within(), record, 300) {
		if kills > stops {
			active.signal(syscall.SIGSTOP)
			stops++
			standby.Becomes("ready")
			worked(within(), record, 300)
			active.signal(syscall.SIGCONT)
		} else {
			active.Kill()
			kills++
			standby.Becomes("ready")
			worked(within(), record, 300)
			active.Start()
		}
		active.Becomes("standby")
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

// HistoryOfFaults lets agents work over one server, while faults come at its journal's engine, in turn. Each is done
// after some hundred operations, at least once, and done with when its function returns.
func HistoryOfFaults(t *testing.T, e Engine, faults map[string]func()) {
	server := Serve(t, e.URL("faults"))
	server.Becomes("ready")
	site := &traffic.Site{Patience: time.Second}
	site.Move(server.http)
	record := history.NewRecorder()
	crowd, err := traffic.Start(t.Context(), site, record, 5, traffic.Full)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), *historyTime)
	defer cancel()
	names, done := slices.Sorted(maps.Keys(faults)), map[string]int{}
	within := func() context.Context {
		if len(done) < len(names) {
			return t.Context()
		}
		return ctx
	}
	for i := 0; worked(within(), record, 300); i++ {
		name := names[i%len(names)]
		faults[name]()
		done[name]++
	}
	if err := crowd.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	record.Verify(t)
	for _, name := range names {
		if t.Attr("count.faults."+name, fmt.Sprint(done[name])); done[name] == 0 {
			t.Errorf("nothing was done: %s", name)
		}
	}
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
