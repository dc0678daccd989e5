package server

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

func TestQueuesAreOperators(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		for body, words := range map[string]string{
			`{"ttl_ms":10}`: "ttl",
			`{"backoff_ms":2000,"max_backoff_ms":10}`:           "max_backoff",
			`{"groups":[{"name":"a"},{"name":"a"}]}`:            "twice",
			`{"max_running":1,"groups":[{"name":"a","max":2}]}`: `"a"`,
		} {
			d.put("/v1/queues/fees", body).want(400, "invalid_queue").says("detail", words)
		}
		d.put("/v1/queues/fees", `{"max_running":-1}`).want(400, "invalid_request")
		d.put("/v1/queues/a%2Fb", ``).want(400, "invalid_queue")
		d.submit(``)
		d.delete("/v1/queues/fees").want(409, "queue_in_use").says("detail", "unsettled tasks (1)")
		for path, want := range map[string]string{"pause": "paused", "drain": "draining", "resume": "resumed"} {
			d.post("/v1/queues/none/"+path, ``).want(404, "unknown_queue")
			d.post("/v1/queues/fees/"+path, `{}`, "Idempotency-Key", path).want(200).is("outcome", want)
		}
	})
}

// A paused queue hands nothing out, and continues where it was.
func TestAPausedQueue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		d.put("/v1/queues/fees", `{"max_running":1,"ttl_ms":20000}`).want(200)
		d.post("/v1/queues/fees/pause", ``).want(200)
		first, second := d.submit(``), d.submit(``)
		idle := d.start(d.request("POST", "/v1/queues/fees/pull", `{"max":2,"wait_ms":50000}`))
		pass(10 * time.Second)
		if got := d.get("/v1/queues/fees").want(200); got.at("queue.paused") != true ||
			got.num("queue.oldest_ms") != 10_000 || got.num("queue.tasks.waiting") != 2 {
			t.Error(got.raw)
		}
		d.post("/v1/queues/fees/resume", ``).want(200)
		pulled := (<-idle).want(200).is("tasks.0.task.id", first)
		if pulled.at("tasks.1") != nil || pulled.num("tasks.0.lease.ttl_ms") != 20_000 {
			t.Error(pulled.raw)
		}
		d.post("/v1/leases/"+pulled.str("tasks.0.lease.id")+"/ack", ``).want(200)
		d.post("/v1/queues/fees/pull", ``).want(200).is("tasks.0.task.id", second)
	})
}

// The event of an operator's change keeps the reason.
func TestReasonOfAChange(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.put("/v1/queues/q", `{}`).want(200)
		d.put("/v1/patterns/p", `{"pattern": "k:{id}", "capacity": 2, "reason": "two machines"}`).want(200)
		d.put("/v1/patterns/p", `{"pattern": "k:{id}", "capacity": 3}`).want(200)
		d.post("/v1/patterns/p/revert", `{"reason": "one is down"}`).want(200)
		for _, verb := range []string{"pause", "drain", "resume"} {
			path, body := "/v1/queues/q/"+verb, `{"reason": "to `+verb+`"}`
			d.post(path, body).want(200)
			d.post(path, `{"reason": "`+strings.Repeat("x", interlock.MaxReasonBytes+1)+`"}`).want(400, "too_long")
		}
		for event, want := range map[string][]string{
			"pattern_set": {"one is down", "", "two machines"}, "queue_set": {"to resume", "to drain", "to pause", ""},
		} {
			var got []string
			page := d.get("/v1/events?before=newest&event=" + event).want(200).raw
			for _, line := range strings.Split(strings.TrimSpace(page), "\n") {
				var e struct{ Note string }
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatalf("%v in %s", err, line)
				}
				got = append(got, e.Note)
			}
			if !slices.Equal(got, want) {
				t.Errorf("the notes of %s are %q, want %q", event, got, want)
			}
		}
		if p := d.get("/v1/patterns/p").want(200).raw; strings.Contains(p, "reason") {
			t.Errorf("the pattern keeps the reason: %s", p)
		}
	})
}
