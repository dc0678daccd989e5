package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/journal/memjournal"
)

// A full disk: no new leases, but renewals and releases work, and a call that waits
// hears of its grant although the engine was made anew meanwhile.
func TestFullDisk(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		lease := d.post("/v1/leases", `{"ttl_ms":600000,"claims":[{"key":"k"}]}`).str("lease.id")
		waiting := d.start(d.request("POST", "/v1/leases", `{"wait_ms":50000,"claims":[{"key":"k"}]}`))
		synctest.Wait()
		ticket := d.post("/v1/leases", `{"on_conflict":"wait","claims":[{"key":"k"}]}`).want(202).str("ticket.id")
		polling := d.start(d.request("GET", "/v1/tickets/"+ticket+"?wait_ms=50000", ""))
		synctest.Wait()

		d.store.Inject(memjournal.NoSpace)
		full := d.post("/v1/leases", `{"claims":[{"key":"other"}]}`).want(503, "no_space")
		if full.header.Get("Retry-After") == "" || full.at("retryable") != true {
			t.Error(full.raw)
		}
		full.says("detail", "nothing was recorded").says(
			"advice.message", "unless the message reports that nothing was recorded",
		)
		synctest.Wait()
		d.post("/v1/leases/"+lease+"/renew", "").want(200)
		d.post("/v1/leases/"+lease+"/release", "").want(200)
		next := (<-waiting).want(200).str("lease.id")
		d.post("/v1/leases/"+next+"/release", "").want(200)
		(<-polling).want(200)
	})
}

// A journal that fails: the call under way hears that its outcome is unknown, waiters learn it at
// once, and health reports that the process must be restarted.
func TestFailedJournal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		const body = `{"claims":[{"key":"k"}]}`
		d.acquire("a", "held")
		waiting := d.start(d.request("POST", "/v1/leases", `{"wait_ms":50000,"claims":[{"key":"held"}]}`))
		pass(time.Second)
		d.store.Inject(memjournal.Stored)
		start := time.Now()
		d.post("/v1/leases", body, "Idempotency-Key", "one").want(503, "outcome_unknown")
		if got := (<-waiting).status; got != 503 {
			t.Errorf("a call that waits got %d", got)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("told after %v", took)
		}
		<-d.shard.Failed()
		if got := d.get("/healthz"); got.status != 503 {
			t.Errorf("health: %d %s", got.status, got.raw)
		}
		if got := d.get("/v1/keys"); got.status != 503 {
			t.Errorf("keys: %d %s", got.status, got.raw)
		}
		if got := d.post("/v1/leases", `{"wait_ms":1000,"claims":[{"key":"x"}]}`); got.status != 503 {
			t.Errorf("acquire: %d %s", got.status, got.raw)
		}
		d.get("/metrics").want(200)
		// The request with an unknown outcome had been stored: the same id finds it.
		_ = d.shard.Close(t.Context())
		d.open()
		d.post("/v1/leases", body, "Idempotency-Key", "one").want(200).is("lease.claims.0.key", "k")
	})
}

// Another server took the shard over.
func TestNotTheOwnerAnyMore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		if _, err := d.store.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.post("/v1/leases", `{"claims":[{"key":"k"}]}`).want(503, "not_owner")
		<-d.shard.Failed()
		d.get("/healthz").want(503, "not_owner")
		d.get("/v1/keys").want(503, "not_owner")
	})
}

// A worker that waits learns that nothing is handed out for now; a waiter for a task learns its end
// although the engine was made anew meanwhile.
func TestFullDiskAndTasks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		asking := d.start(d.request("POST", "/v1/tasks", `{"queue":"fees","wait_ms":50000}`))
		synctest.Wait()
		id := d.get("/v1/tasks").want(200).str("tasks.0.id")
		following := d.start(d.request("GET", "/v1/tasks/"+id+"?wait_ms=50000", ""))
		lease := d.pull()
		idle := d.start(d.request("POST", "/v1/queues/fees/pull", `{"wait_ms":50000}`))
		synctest.Wait()

		d.store.Inject(memjournal.NoSpace)
		d.post("/v1/tasks", `{"queue":"fees"}`).want(503, "no_space")
		if got := (<-idle).want(503, "no_space"); got.header.Get("Retry-After") == "" {
			t.Error(got.raw)
		}
		d.post("/v1/leases/"+lease+"/ack", `{"result":1}`).want(200)
		(<-asking).want(200).is("outcome", "done").is("task.id", id)
		(<-following).want(200).is("task.state", "done")
	})
}
