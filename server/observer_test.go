package server

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/shard"
)

// figure finds one sample of /metrics.
func (d *door) figure(name string) string {
	d.Helper()
	for line := range strings.Lines(d.get("/metrics").want(200).raw) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return "absent"
}

func TestMetrics(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		s := d.session("secret-agent")
		lease := d.post("/v1/leases", `{"session":"`+s+`","claims":[{"key":"secret-key"}]}`).str("lease.id")
		d.post("/v1/leases", `{"claims":[{"key":"secret-key","mode":"shared"}]}`).want(409)
		ticket := d.post(
			"/v1/leases", `{"agent":"secret-agent","on_conflict":"wait","claims":[{"key":"secret-key","mode":"shared"}]}`,
		).str("ticket.id")
		for name, want := range map[string]string{
			"interlock_leases": "1", "interlock_waiters": "1", "interlock_sessions": "1", "interlock_namespaces": "1",
		} {
			if got := d.figure(name); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
		pass(7 * time.Second)
		d.post("/v1/leases/"+lease+"/release", "").want(200)
		d.get("/v1/tickets/" + ticket).want(200)
		d.post("/v1/fences/check", `{"key":"secret-key","fence":"999"}`).want(409)
		pass(interlock.DefaultTTL + interlock.DefaultGrace)
		for name, want := range map[string]string{
			`interlock_wait_seconds_sum{mode="shared",outcome="granted"}`:                "7",
			`interlock_wait_seconds_count{mode="exclusive",outcome="granted"}`:           "1",
			`interlock_hold_seconds_sum{mode="exclusive",outcome="released"}`:            "7",
			`interlock_hold_seconds_count{mode="shared",outcome="ttl"}`:                  "1",
			`interlock_hold_seconds_bucket{mode="exclusive",outcome="released",le="10"}`: "1",
			`interlock_acquires_total{outcome="granted"}`:                                "1",
			`interlock_acquires_total{outcome="queued"}`:                                 "1",
			`interlock_acquires_total{outcome="held"}`:                                   "1",
			`interlock_expiries_total{tier="grace"}`:                                     "1",
			`interlock_expiries_total{tier="ended"}`:                                     "1",
			`interlock_fence_refusals_total`:                                             "1",
			`interlock_deadlocks_total`:                                                  "0",
			`interlock_leases`:                                                           "0",
			`interlock_http_requests_total{route="/v1/leases",status="200"}`:             "1",
			`interlock_http_requests_total{route="/v1/leases",status="202"}`:             "1",
			`interlock_http_requests_total{route="/v1/fences/check",status="409"}`:       "1",
		} {
			if got := d.figure(name); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
		for _, name := range []string{
			"interlock_journal_append_seconds_count", "interlock_journal_batch_entries_count",
			"interlock_engine_lag_seconds_count",
		} {
			if got := d.figure(name); got == "absent" || got == "0" {
				t.Errorf("%s is %s", name, got)
			}
		}
		if text := d.get("/metrics").raw; strings.Contains(text, "secret") {
			t.Error("a key or an agent is in the metrics")
		}
		// The native form of a histogram is there on request.
		native := d.get(
			"/metrics", "Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
		)
		if kind := native.header.Get("Content-Type"); !strings.HasPrefix(kind, "application/vnd.google.protobuf") {
			t.Errorf("content type %s", kind)
		}
	})
}

// Snapshots are timed, and the running program is named with its journal.
func TestMetricsOfTheJournal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t, func(c *Config) { c.JournalKind, c.Version = "postgres", "v1.2.3" })
		d.obs.Saved(3 * time.Second)
		d.obs.Saved(40 * time.Second)
		for name, want := range map[string]string{
			"interlock_snapshot_seconds_sum":                            "43",
			"interlock_snapshot_seconds_count":                          "2",
			`interlock_snapshot_seconds_bucket{le="5"}`:                 "1",
			`interlock_build_info{journal="postgres",version="v1.2.3"}`: "1",
		} {
			if got := d.figure(name); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
	})
}

func TestWarningsAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		s := d.session("worker")
		d.post("/v1/leases", `{"session":"`+s+`","max_hold_ms":10000,"claims":[{"key":"a"}]}`).want(200)
		pass(8 * time.Second)
		d.post("/v1/sessions/"+s+"/heartbeat", "").want(200).is("warnings.0.advice.action", "stop")
		if got := d.figure(`interlock_expiries_total{tier="soft"}`); got != "1" {
			t.Errorf("%s warnings", got)
		}
	})
}

func TestDeadlocksAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		one, two := d.session("one"), d.session("two")
		d.post("/v1/leases", `{"session":"`+one+`","claims":[{"key":"a"}]}`).want(200)
		d.post("/v1/leases", `{"session":"`+two+`","claims":[{"key":"b"}]}`).want(200)
		d.post("/v1/leases", `{"session":"`+one+`","on_conflict":"wait","claims":[{"key":"b"}]}`).want(202)
		d.post("/v1/leases", `{"session":"`+two+`","on_conflict":"wait","claims":[{"key":"a"}]}`).want(409, "deadlock")
		if got := d.figure("interlock_deadlocks_total"); got != "1" {
			t.Errorf("%s deadlocks", got)
		}
	})
}

// Each ended lease is one line, with the trace of the request that acquired it and
// without any id: at level debug if its holder ended it, else at info.
func TestEndedLeaseIsLogged(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		var log bytes.Buffer
		obs := NewObserver(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), nil)
		if err := d.shard.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		j, err := d.store.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sh, err := shard.Open(t.Context(), shard.Config{Journal: j, Observer: obs, SnapshotBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		if d.server, err = New(Config{Shard: sh, Observer: obs}); err != nil {
			t.Fatal(err)
		}
		d.handler = d.server.HTTPHandler()
		const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		lease := d.post(
			"/v1/leases",
			`{"agent":"billing-7","purpose":"fee\u001b[31m","claims":[{"key":"account:1"},{"key":"org:acme","mode":"intent-shared"}]}`,
			"Traceparent", trace,
		)
		pass(3 * time.Second)
		d.post("/v1/leases/"+lease.str("lease.id")+"/release", `{"outcome":"done"}`).want(200)
		d.post("/v1/leases", `{"claims":[{"key":"b"}]}`, "Traceparent", "nonsense").want(200)
		if err := sh.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		obs.Close()
		obs.Close()
		var line map[string]any
		if err := json.Unmarshal(log.Bytes(), &line); err != nil {
			t.Fatalf("%v in %s", err, log.String())
		}
		for name, want := range map[string]any{
			"msg": "lease ended", "level": "DEBUG", "namespace": "default", "agent": "billing-7", "purpose": "fee [31m",
			"reason": "released", "outcome": "done",
			"held_ms": 3000.0, "fence": 1.0, "mode": "exclusive", "trace_id": "0af7651916cd43dd8448eb211c80319c",
			"span_id": "b7ad6b7169203331", "trace_flags": "01",
		} {
			if line[name] != want {
				t.Errorf("%s is %v, want %v", name, line[name], want)
			}
		}
		if keys, ok := line["keys"].([]any); !ok || len(keys) != 2 || keys[0] != "account:1" {
			t.Errorf("keys are %v", line["keys"])
		}
		if strings.Contains(log.String(), lease.str("lease.id")[2:]) {
			t.Error("the lease's id is in the log")
		}
	})
}

// With the default level only those leases are logged that their holders did not end.
func TestUsualEndsAreNotLogged(t *testing.T) {
	for reason := record.ByRelease; reason <= record.ByQuestion; reason++ {
		var log bytes.Buffer
		obs := NewObserver(slog.New(slog.NewTextHandler(&log, nil)), nil)
		obs.Committed([]record.Event{{
			Kind: record.Ended, Namespace: "default", Claims: []interlock.Claim{{Key: "k"}}, Reason: reason,
		}})
		obs.Close()
		usual := reason == record.ByRelease || reason == record.BySession || reason == record.ByConversion
		if got := log.String(); (got == "") != usual || !usual && !strings.Contains(got, "level=INFO") {
			t.Errorf("the end by %q is logged as %q", reason, got)
		}
	}
}

// A line that comes by itself is written at once, and those that come soon after it
// together; unless they are many, which are written before there is no room for more.
func TestLinesOfLogCollect(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var log bytes.Buffer
		written := make(chan int, 16) // lines, by flush
		obs := NewObserver(slog.New(slog.NewTextHandler(&log, nil)), func() error {
			if n := strings.Count(log.String(), "\n"); n > 0 {
				written <- n
			}
			log.Reset()
			return nil
		})
		defer obs.Close()
		ended := []record.Event{{
			Kind: record.Ended, Namespace: "default", Claims: []interlock.Claim{{Key: "k", Mode: interlock.Exclusive}},
			Reason: record.ByTTL,
		}}
		expect := func(want ...int) {
			t.Helper()
			synctest.Wait()
			var got []int
			for len(written) > 0 {
				got = append(got, <-written)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v lines were written together, want %v", got, want)
			}
		}
		obs.Committed(ended)
		expect(1)
		for range 3 {
			obs.Committed(ended)
		}
		expect()
		pass(linesCollect)
		expect(3)
		obs.Committed(slices.Repeat(ended, linesMany+1))
		expect(linesMany + 1)
		obs.Committed(ended)
		obs.Close()
		expect(1)
	})
}

// stuckLog is a log without a reader.
type stuckLog struct{ taken, release chan struct{} }

func (s stuckLog) Write(b []byte) (int, error) {
	s.taken <- struct{}{}
	<-s.release
	return len(b), nil
}

// A log that stands still must not hold up the shard: lines are dropped, and
// counted.
func TestStuckLogHoldsUpNobody(t *testing.T) {
	stuck := stuckLog{make(chan struct{}), make(chan struct{})}
	obs := NewObserver(slog.New(slog.NewTextHandler(io.Writer(stuck), nil)), nil)
	ended := []record.Event{{
		Kind: record.Ended, Namespace: "default", Claims: []interlock.Claim{{Key: "k", Mode: interlock.Exclusive}},
		Reason: record.ByTTL,
	}}
	obs.Committed(ended)
	<-stuck.taken
	for range logBacklog + 10 {
		obs.Committed(ended)
	}
	go func() {
		for range stuck.taken {
		}
	}()
	close(stuck.release)
	obs.Close()
	close(stuck.taken)
	d := newDoor(t, func(c *Config) { c.Observer = obs })
	if got := d.figure("interlock_log_lines_dropped_total"); got != "10" {
		t.Errorf("%s lines were dropped", got)
	}
}
