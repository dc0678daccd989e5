package server

import (
	"testing"
	"time"
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
