package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/journal/memjournal"
)

const runsOf2 = `{"pattern":"org:{org}/runs","capacity":2}`

// A cap of 2 and ten callers at once, over connections of their own: exactly 2 run, and 8 learn
// when to come back.
func TestTenStartsAtCapTwo(t *testing.T) {
	d := newDoor(t)
	d.pattern("runs", runsOf2)
	srv := httptest.NewServer(d.handler)
	defer srv.Close()
	var all sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	ready := make(chan struct{})
	for i := range 10 {
		all.Go(func() {
			<-ready
			body := strings.NewReader(fmt.Sprintf(`{"org":"acme","workflow":"triage","agent":"triage-%d","wait_ms":0}`, i))
			res, err := http.Post(srv.URL+"/v1/runs", "application/json", body)
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
			if res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") == "" {
				t.Error("a refusal does not say when to come back")
			}
			mu.Lock()
			statuses[res.StatusCode]++
			mu.Unlock()
		})
	}
	close(ready)
	all.Wait()
	if statuses[200] != 2 || statuses[429] != 8 {
		t.Errorf("the answers are %v, want 2 of 200 and 8 of 429", statuses)
	}
	if got := d.figure(`interlock_acquires_total{outcome="too_many_runs"}`); got != "8" {
		t.Errorf("%s refusals were counted", got)
	}
}

// A waiter runs as soon as a run has ended; one without a time limit waits for two seconds.
func TestRunsInLine(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.pattern("runs", `{"pattern":"org:{org}/runs","capacity":1}`)
		run := d.post("/v1/runs", `{"org":"acme","ttl_ms":600000}`).want(200).str("run.id")
		began := time.Now()
		d.post("/v1/runs", `{"org":"acme"}`).want(429, "too_many_runs")
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it waited for %v", took)
		}
		waiting := d.start(d.request("POST", "/v1/runs", `{"org":"acme","wait_ms":50000}`))
		pass(time.Second)
		d.post("/v1/runs/"+run+"/end", ``).want(200)
		next := (<-waiting).want(200).str("run.id")
		d.post("/v1/leases/"+next+"/renew", ``).want(200)
	})
}

// Only a run is ended as one.
func TestEndOfWhatIsNoRun(t *testing.T) {
	d := newDoor(t)
	lease := d.post("/v1/leases", `{"agent":"a","claims":[{"key":"k"}]}`).want(200).str("lease.id")
	d.post("/v1/runs/"+lease+"/end", ``).want(404, "unknown_lease")
	d.post("/v1/leases/"+lease+"/renew", ``).want(200)
}

// A waiter leaves the line when its caller hangs up: the next one runs.
func TestRunOfCallerWhoHungUp(t *testing.T) {
	for _, key := range []string{"", "mine"} {
		inBubble(t, func(t *testing.T) {
			d := newDoor(t)
			d.pattern("runs", `{"pattern":"org:{org}/runs","capacity":1}`)
			run := d.post("/v1/runs", `{"org":"acme","ttl_ms":600000}`).want(200).str("run.id")
			ctx, hangUp := context.WithCancel(t.Context())
			var headers []string
			if key != "" {
				headers = []string{"Idempotency-Key", key}
			}
			gone := d.start(d.request(
				"POST", "/v1/runs", `{"org":"acme","wait_ms":50000,"agent":"gone"}`, headers...,
			).WithContext(ctx))
			pass(time.Second)
			next := d.start(d.request("POST", "/v1/runs", `{"org":"acme","wait_ms":50000,"agent":"next"}`))
			pass(time.Second)
			d.loose = true // a caller that left gets no answer
			hangUp()
			<-gone
			synctest.Wait()
			if n := len(d.get("/v1/keys/org:acme%2Fruns").want(200).at("waiters").([]any)); n != 1 {
				t.Errorf("%d stand in line", n)
			}
			d.post("/v1/runs/"+run+"/end", ``).want(200)
			(<-next).want(200).is("run.lease.holder.agent", "next")
			if rows := d.get("/v1/runs").want(200).at("runs").([]any); len(rows) != 1 {
				t.Errorf("%d run", len(rows))
			}
			// The same key asks for the run that never was.
			again := d.start(d.request("POST", "/v1/runs", `{"org":"acme","wait_ms":1000,"agent":"gone"}`, headers...))
			(<-again).want(429, "too_many_runs")
		})
	}
}

// The same Idempotency-Key gets the same run, over a restart and a lost answer of the journal; a
// refusal is not remembered.
func TestRunsAreStartedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.pattern("runs", runsOf2)
		start := func(key string, status int) *reply {
			t.Helper()
			return d.post(
				"/v1/runs", `{"org":"acme","workflow":"triage","wait_ms":0,"ttl_ms":600000}`, "Idempotency-Key", key,
			).want(status)
		}
		a := start("a", 200).str("run.id")
		d.reopen()
		if again := start("a", 200).str("run.id"); again != a {
			t.Errorf("%s became %s", a, again)
		}
		d.store.Inject(memjournal.Stored)
		start("b", 503).is("code", "outcome_unknown")
		start("c", 503) // the shard is over
		_ = d.shard.Close(t.Context())
		d.open()
		b := start("b", 200).str("run.id")
		start("c", 429).is("code", "too_many_runs")
		d.post("/v1/runs/"+a+"/end", ``).want(200)
		start("a", 410).is("code", "released")
		if c := start("c", 200).str("run.id"); c == a || c == b {
			t.Errorf("%s is another's run", c)
		}
		d.post("/v1/runs", `{"org":"globex"}`, "Idempotency-Key", "c").want(422, "request_id_reused")
	})
}

// Two calls under one key: the later one has the place in line, and both are one run.
func TestRunOfTwoCalls(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.pattern("runs", `{"pattern":"org:{org}/runs","capacity":1}`)
		run := d.post("/v1/runs", `{"org":"acme","ttl_ms":600000}`).want(200).str("run.id")
		call := func(wait string) <-chan *reply {
			return d.start(d.request(
				"POST", "/v1/runs", `{"org":"acme","agent":"a","wait_ms":`+wait+`}`, "Idempotency-Key", "k",
			))
		}
		first := call("5000")
		pass(time.Second)
		second := call("20000")
		pass(time.Second)
		(<-call("0")).want(429, "too_many_runs").says("detail", "another call")
		d.post("/v1/runs/"+run+"/end", ``).want(200)
		got := (<-second).want(200).str("run.id")
		if end := (<-first).want(200).str("run.id"); end != got {
			t.Errorf("two runs: %s and %s", end, got)
		}
		if rows := d.get("/v1/runs").want(200).at("runs").([]any); len(rows) != 1 {
			t.Errorf("%d run", len(rows))
		}
	})
}

// A server that drains starts nothing: a waiter is asked to come again.
func TestRunsOfDrainingServer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.pattern("runs", `{"pattern":"org:{org}/runs","capacity":1}`)
		d.post("/v1/runs", `{"org":"acme"}`).want(200)
		waiting := d.start(d.request("POST", "/v1/runs", `{"org":"acme","wait_ms":50000}`))
		pass(time.Second)
		d.server.Drain()
		(<-waiting).want(503, "shutting_down")
	})
}

func TestRunsOfBadRequests(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.post("/v1/runs", `{}`).want(400, "invalid_request").says("detail", "field org is missing")
		d.post("/v1/runs", `{"org":""}`).want(400, "invalid_key")
		d.post("/v1/runs", `{"org":"a/b"}`).want(400, "invalid_key").says("detail", "contains a slash")
		d.post("/v1/runs", `{"org":"a","workflow":"b/c"}`).want(400, "invalid_key").says(
			"detail", `workflow "b/c" contains a slash`,
		)
		d.post("/v1/runs", `{"org":"a","wait_ms":-1}`).want(400, "invalid_ttl")
		d.post("/v1/runs", `{"org":"a","claims":[]}`).want(400, "invalid_request").says("detail", "unknown field")
		d.post("/v1/patterns/runs/revert", `{"revision":0}`).want(400, "invalid_request")
		d.post("/v1/patterns/runs/revert", ``).want(404, "unknown_pattern")
		d.get("/v1/runs?limit=0").want(400, "invalid_request")
	})
}
