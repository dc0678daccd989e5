package remotetest

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/history"
	"github.com/interlockdev/interlock/internal/test/history/traffic"
)

var historyTime = flag.Duration("history", 20*time.Second, "how long the agents of HistoryOfFailOvers work")

// HistoryOfFailOvers lets agents work over two servers, while one fault after the other comes to the owner of the
// shard. Every answer of both is compared with one history: nothing that was acknowledged is lost, nothing happens
// twice, and a request after a new owner's first answer gets none of the old one's.
func HistoryOfFailOvers(t *testing.T, e Engine) {
	hosts := serveHosts(t, e, "history")
	hosts[0].Grant("aside") // what the calls beside the history ask about
	site := &traffic.Site{Patience: time.Second}
	site.Move(hosts[0].http, hosts[1].http)
	record := history.NewRecorder()
	crowd, err := traffic.Start(t.Context(), site, record, 5, traffic.Full)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), *historyTime)
	defer cancel()
	done := map[string]int{}
	// Each fault comes once at least, also on a machine on which that takes longer than the agents should work.
	within := func() context.Context {
		if len(done) < len(faults) {
			return t.Context()
		}
		return ctx
	}
	takeovers := 0
	for i := 0; worked(within(), record, 300); i++ {
		f := &faults[i%len(faults)]
		site.Patience = f.patience
		site.Move(hosts[0].http, hosts[1].http)
		before, _ := ownerOf(t, hosts)
		began := time.Now()
		f.comeTo(t, hosts, func() { worked(t.Context(), record, f.work) })
		done[f.name]++
		after, _ := ownerOf(t, hosts)
		if after != before {
			takeovers++
		}
		t.Logf("%s took %v; another owner: %t", f.name, time.Since(began).Round(time.Millisecond), after != before)
	}
	if err := crowd.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	record.Verify(t)
	for _, f := range faults {
		if t.Attr("count.faults."+f.name, fmt.Sprint(done[f.name])); done[f.name] == 0 {
			t.Errorf("nothing was done: %s", f.name)
		}
	}
	t.Attr("count.faults.failover", fmt.Sprint(takeovers))
	t.Attr("count.takeovers", fmt.Sprint(takeovers))
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
