package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

// newTaskDoor opens a door with a queue "fees".
func newTaskDoor(t *testing.T, change ...func(*Config)) *door {
	t.Helper()
	d := newDoor(t, change...)
	d.put("/v1/queues/fees", ``).want(200).is("outcome", "set")
	return d
}

// submit submits a task to the queue "fees".
func (d *door) submit(fields string) (id string) {
	d.Helper()
	return d.post("/v1/tasks", `{"queue":"fees"`+fields+`}`).want(202).is("outcome", "submitted").str("task.id")
}

// pull takes one task that is there, and returns its lease.
func (d *door) pull() (lease string) {
	d.Helper()
	return d.post("/v1/queues/fees/pull", `{"agent":"worker"}`).want(200).is("outcome", "granted").str("tasks.0.lease.id")
}

const lateFee = `,"agent":"billing-7","kind":"late_fee","purpose":"late fee","claims":[{"key":"account:12"}],"payload":{"cents": 3500, "to": "<b>"}`

func TestATaskIsDone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		d.post("/v1/commits", `{"writes":[{"key":"account:12","add":5000}]}`).want(200)
		const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		sent := d.post(
			"/v1/tasks", `{"queue":"fees"`+lateFee+`}`, "Idempotency-Key", "one", "Traceparent", trace,
		).want(202)
		id := sent.is("task.state", "waiting").is("advice.action", "work_elsewhere").str("task.id")
		d.post("/v1/tasks", `{"queue":"fees"`+lateFee+`}`, "Idempotency-Key", "one").want(202).is("task.id", id)
		d.post("/v1/tasks", `{"queue":"fees"}`, "Idempotency-Key", "one").want(422, "request_id_reused")
		d.get("/v1/tasks/"+id).want(200).is("task.kind", "late_fee").is("task.payload.to", "<b>").is(
			"task.agent", "billing-7",
		)

		pulled := d.post("/v1/queues/fees/pull", `{"agent":"worker","max":5}`).want(200).is("outcome", "granted")
		pulled.is("tasks.0.task.id", id).is("tasks.0.task.state", "running").is("tasks.0.lease.holder.agent", "worker").is(
			"tasks.0.as_of", "1",
		).is("tasks.0.task.trace", trace)
		if pulled.num("tasks.0.task.attempt") != 1 || pulled.num("tasks.0.documents.0.value") != 5000 ||
			pulled.num("tasks.0.task.payload.cents") != 3500 {
			t.Error(pulled.raw)
		}
		lease := pulled.str("tasks.0.lease.id")
		d.post("/v1/leases/"+lease+"/renew", ``).want(200)
		d.post("/v1/leases", `{"claims":[{"key":"account:12"}]}`).want(409, "held").is("holders.0.agent", "worker")

		// An acknowledgement with a refused commit leaves the attempt as it is.
		d.post("/v1/leases/"+lease+"/ack", `{"writes":[{"key":"account:12","add":-9000,"min":0}]}`).want(409, "out_of_bounds")
		d.post("/v1/leases/"+lease+"/ack", `{"as_of":"1","reads":[{"key":"account:12","version":"0"}]}`).want(
			412, "stale",
		).is("packet.stale.0.key", "account:12")
		const ack = `{"result":{"charged":3500},"as_of":"1","writes":[{"key":"account:12","add":-3500,"min":0}],"note":"charged",
			"tasks":[{"queue":"fees","kind":"mail","payload":"sent"}]}`
		for range 2 {
			acked := d.post("/v1/leases/"+lease+"/ack", ack, "Idempotency-Key", "ack").want(200).is("outcome", "done")
			acked.is("task.id", id).is("task.state", "done").is("version", "2")
			if acked.num("documents.0.value") != 1500 || acked.num("task.result.charged") != 3500 {
				t.Error(acked.raw)
			}
		}
		d.post("/v1/leases/"+lease+"/ack", `{}`, "Idempotency-Key", "ack").want(422, "request_id_reused")
		d.post("/v1/leases/"+lease+"/ack", ack).want(410, "task_moved").is("task.state", "done").is("advice.action", "stop")
		d.get("/v1/tasks/"+id).want(200).is("task.state", "done")
		next := d.get("/v1/tasks?state=waiting").want(200).is("tasks.0.kind", "mail")
		if next.at("tasks.0.payload") != nil || next.at("tasks.1") != nil {
			t.Error(next.raw)
		}
		d.post("/v1/leases", `{"claims":[{"key":"account:12"}]}`).want(200).is("notes.0.text", "charged")
	})
}

func TestTasksAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		d.put("/v1/patterns/slots", `{"pattern":"slots:{id}","capacity":2}`).want(200)
		large := strings.Repeat("x", interlock.MaxPayloadBytes)
		for body, want := range map[string]string{
			`{}`:                           "400 invalid_request queue is missing",
			`{"queue":"none"}`:             "404 unknown_queue \"none\"",
			`{"queue":"fees","payload":1x`: "400 invalid_request the body",
			`{"queue":"fees","payload":"` + large + `"}`:                                        "400 invalid_payload 262146 bytes",
			`{"queue":"fees","claims":[{"key":"slots:1","permits":1},{"key":"slots:1"}]}`:       "400 never_together slots:1",
			`{"queue":"fees","claims":[{"key":"slots:1","permits":3}]}`:                         "400 too_many_permits slots:1",
			`{"queue":"fees","claims":[{"key":"gate","parties":2}]}`:                            "400 invalid_mode gate",
			`{"queue":"fees","claims":[{"key":"a//b"}]}`:                                        "400 invalid_key a//b",
			`{"queue":"fees","claims":[{"key":"a"},{"key":"a"}]}`:                               "400 duplicate_claim a",
			`{"queue":"fees","delay_ms":1000,"deadline_ms":1000}`:                               "400 invalid_ttl deadline",
			`{"queue":"fees","delay_ms":99999999999999}`:                                        "400 invalid_ttl delay",
			`{"queue":"fees","priority":101}`:                                                   "400 invalid_priority priority",
			`{"queue":"fees","max_attempts":1001}`:                                              "400 invalid_request max_attempts",
			`{"queue":"fees","session":"s_00000000000000000000000000000001"}`:                   "404 unknown_session session",
			`{"queue":"fees","approval":{}}`:                                                    "400 invalid_request question",
			`{"queue":"fees","approval":{"question":"?","on_limit":"perhaps"}}`:                 "400 invalid_request approved or denied",
			`{"queue":"fees","approval":{"question":"?","reads":[{"key":"k"}]}}`:                "400 invalid_request version",
			`{"queue":"fees","kind":"` + strings.Repeat("k", 129) + `"}`:                        "400 too_long kind",
			`{"queue":"fees","claims":[` + strings.Repeat(`{"key":"a"},`, 64) + `{"key":"b"}]}`: "400 too_many_claims claims",
		} {
			got := d.post("/v1/tasks", body)
			var status int
			var code string
			if _, err := fmt.Sscan(want, &status, &code); err != nil {
				t.Fatal(err)
			}
			words := strings.SplitN(want, " ", 3)[2]
			got.want(status, code).says("detail", words)
		}
		d.post("/v1/queues/fees/drain", ``).want(200).is("outcome", "draining")
		d.post("/v1/tasks", `{"queue":"fees"}`).want(503, "queue_draining")
		d.post("/v1/queues/fees/resume", ``).want(200).is("outcome", "resumed")
		d.put("/v1/queues/fees", `{"max_tasks":1}`).want(200)
		d.submit(``)
		if got := d.post("/v1/tasks", `{"queue":"fees"}`).want(429, "too_many_tasks"); got.header.Get("Retry-After") != "30" {
			t.Error(got.header)
		}
	})
}

// A waiter for a task learns its end, however that comes about.
func TestWaitingForATask(t *testing.T) {
	for name, c := range map[string]struct {
		settle func(d *door, id string)
		after  time.Duration
		status int
		is     string // outcome, or code
		state  string
	}{
		"done": {
			func(d *door, _ string) { d.post("/v1/leases/"+d.pull()+"/ack", `{"result":1}`).want(200) },
			0, 200, "done", "done",
		},
		"dead": {
			func(d *door, _ string) {
				d.post("/v1/leases/"+d.pull()+"/nack", `{"dead":true,"reason":"no such customer"}`).want(200)
			},
			0, 409, "task_settled", "dead",
		},
		"cancelled": {
			func(d *door, id string) {
				d.post("/v1/tasks/"+id+"/cancel", `{"reason":"paid"}`).want(200).is("outcome", "cancelled")
			},
			0, 409, "task_settled", "cancelled",
		},
		"its deadline": {func(*door, string) {}, 20 * time.Second, 409, "task_settled", "dead"},
		"the end":      {nil, 50 * time.Second, 202, "submitted", "waiting"},
		"the server":   {func(d *door, _ string) { d.server.Drain() }, 0, 202, "submitted", "waiting"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				d := newTaskDoor(t)
				body := `{"queue":"fees","wait_ms":50000,"deadline_ms":20000}`
				if c.settle == nil {
					body = `{"queue":"fees","wait_ms":50000}`
				}
				began := time.Now()
				waiting := d.start(d.request("POST", "/v1/tasks", body, "Idempotency-Key", "one"))
				pass(time.Second)
				id := d.get("/v1/tasks?queue=fees").want(200).str("tasks.0.id")
				looking := d.start(d.request("GET", "/v1/tasks/"+id+"?wait_ms=60000", ""))
				pass(1)
				if c.settle != nil {
					c.settle(d, id)
				}
				got := (<-waiting).want(c.status).is("task.id", id).is("task.state", c.state)
				if got.str("outcome")+got.str("code") != c.is {
					t.Error(got.raw)
				}
				if took := time.Since(began); took < c.after || took > c.after+2*time.Second {
					t.Errorf("it took %s, want %s", took, c.after)
				}
				(<-looking).want(200).is("task.state", c.state)
				if c.state != "waiting" { // the same request again, after its end
					d.post("/v1/tasks", body, "Idempotency-Key", "one").want(c.status).is("task.id", id)
				}
			})
		})
	}
}

// A worker that waits is handed a task as soon as there is one; one that hung up is
// handed nothing.
func TestNothingIsHandedToTheDead(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		ctx, leave := context.WithCancel(t.Context())
		gone := d.start(d.request("POST", "/v1/queues/fees/pull", `{"agent":"gone","wait_ms":50000}`).WithContext(ctx))
		pass(time.Second)
		idle := d.start(d.request("POST", "/v1/queues/fees/pull", `{"agent":"worker","wait_ms":50000}`))
		pass(time.Second)
		if n := d.get("/v1/queues/fees").want(200).num("queue.idle_workers"); n != 2 {
			t.Errorf("%d workers are idle", n)
		}
		d.loose = true // a caller that left gets no answer
		leave()
		<-gone
		pass(1)
		if n := d.get("/v1/queues/fees").want(200).num("queue.idle_workers"); n != 1 {
			t.Errorf("%d workers are idle", n)
		}
		id := d.submit(``)
		(<-idle).want(200).is("tasks.0.task.id", id).is("tasks.0.lease.holder.agent", "worker")

		began := time.Now()
		d.post("/v1/queues/fees/pull", `{"wait_ms":30000}`).want(200).is("outcome", "empty")
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("a pull waited %s", took)
		}
		if n := d.get("/v1/queues/fees").want(200).num("queue.idle_workers"); n != 0 {
			t.Errorf("%d workers are idle", n)
		}
	})
}

// A worker is notified of the end of its wait.
func TestPullsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		session := d.session("worker")
		idle := d.start(d.request("POST", "/v1/queues/fees/pull", `{"session":"`+session+`","wait_ms":50000}`))
		pass(1)
		d.delete("/v1/sessions/" + session).want(200)
		(<-idle).want(410, "session_ended")
		d.post("/v1/queues/fees/pull", `{"session":"`+session+`"}`).want(410, "session_ended")

		idle = d.start(d.request("POST", "/v1/queues/fees/pull", `{"wait_ms":50000}`))
		pass(1)
		d.delete("/v1/queues/fees").want(200)
		(<-idle).want(404, "unknown_queue")
		d.post("/v1/queues/fees/pull", ``).want(404, "unknown_queue")
		d.post("/v1/queues/fees/pull", `{"max":65}`).want(400, "invalid_request")
		d.post("/v1/queues/fees/pull", `{"ttl_ms":1}`).want(400, "invalid_ttl")

		d.put("/v1/queues/fees", ``).want(200)
		idle = d.start(d.request("POST", "/v1/queues/fees/pull", `{"wait_ms":50000}`))
		pass(1)
		d.server.Drain()
		(<-idle).want(503, "shutting_down")
	})
}

// The leases of a worker with a session are the session's, each in a flow of its own.
func TestAWorkerWithASession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		session := d.session("worker")
		ids := []string{d.submit(lateFee), d.submit(`,"claims":[{"key":"account:13"}]`)}
		pulled := d.post("/v1/queues/fees/pull", `{"session":"`+session+`","max":2}`).want(200)
		for i, id := range ids {
			pulled.is(fmt.Sprintf("tasks.%d.lease.holder.flow", i), id)
		}
		d.delete("/v1/sessions/" + session).want(200)
		moved := d.post("/v1/leases/"+pulled.str("tasks.0.lease.id")+"/ack", ``).want(410, "task_moved")
		moved.is("task.state", "scheduled").is("task.attempts.0.ended_by", "session_closed").is(
			"task.attempts.0.agent", "worker",
		)
		moved.says("detail", "it is now scheduled").says("advice.message", "pull the next task")
	})
}

// A pull is answered again after its answer was lost; without a session its leases cannot be named.
func TestAPullIsRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		session, ids := d.session("worker"), []string{d.submit(``), d.submit(``), d.submit(``)}
		pull := func(body, key string) *reply {
			return d.post("/v1/queues/fees/pull", body, "Idempotency-Key", key).want(200)
		}
		body := `{"session":"` + session + `","max":2}`
		first, again := pull(body, "one"), pull(body, "one")
		for i := range 2 {
			lease := fmt.Sprintf("tasks.%d.lease.id", i)
			again.is(fmt.Sprintf("tasks.%d.task.id", i), ids[i]).is(lease, first.str(lease))
		}
		d.post("/v1/leases/"+first.str("tasks.0.lease.id")+"/ack", ``).want(200)
		if again = pull(body, "one").is("tasks.0.task.id", ids[1]); again.at("tasks.1") != nil {
			t.Error(again.raw)
		}
		d.put("/v1/queues/mail", ``).want(200)
		// another queue's is another pull
		d.post("/v1/queues/mail/pull", body, "Idempotency-Key", "one").want(200).is("outcome", "empty")
		pull(body, "two").is("tasks.0.task.id", ids[2])
		pull(`{}`, "three").is("outcome", "empty")
		d.submit(``)
		d.submit(``)
		if a, b := pull(`{}`, "three").str("tasks.0.lease.id"), pull(`{}`, "three").str("tasks.0.lease.id"); a == b ||
			b == "" {
			t.Error("a pull without a session is repeated")
		}
	})
}

// An attempt that was lost goes to the next worker, under a higher fence; the former worker learns
// the new one.
func TestWhoHasATaskNow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		id := d.submit(lateFee + `,"backoff_ms":1`)
		first := d.post("/v1/queues/fees/pull", `{"agent":"slow","ttl_ms":1000}`).want(200)
		next := d.start(d.request("POST", "/v1/queues/fees/pull", `{"agent":"quick","wait_ms":50000}`))
		second := (<-next).want(200).is("tasks.0.task.id", id)
		if second.num("tasks.0.task.attempt") != 2 || second.str("tasks.0.lease.fence") <= first.str("tasks.0.lease.fence") {
			t.Error(second.raw)
		}
		for _, path := range []string{"/ack", "/nack"} {
			moved := d.post("/v1/leases/"+first.str("tasks.0.lease.id")+path, ``).want(410, "task_moved")
			moved.says("detail", `"quick" is running it`, "attempt 2").is("holders.0.agent", "quick").is("task.state", "running")
		}
		lease := d.acquire("somebody", "other")
		d.post("/v1/leases/"+lease+"/ack", ``).want(400, "invalid_request").says("detail", "does not belong to a task")
		d.post("/v1/leases/l_00000000000000000000000000000001/ack", ``).want(404, "unknown_lease")
		d.post("/v1/leases/"+id+"/ack", ``).want(400, "invalid_id")
	})
}

func TestFailedAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		id := d.submit(`,"max_attempts":3`)
		nack := func(body, state string) *reply {
			return d.post("/v1/leases/"+d.pull()+"/nack", body, "Idempotency-Key", fresh()).want(200).is("outcome", "nacked").is(
				"task.state", state,
			)
		}
		nack(`{"reason":"no answer","delay_ms":0}`, "waiting").is("task.reason", "no answer")
		if got := nack(`{"reason":"again \u001b[2J","delay_ms":60000}`, "scheduled"); got.num("task.due_in_ms") != 60_000 ||
			contains(got.raw, `\u001b`) {
			t.Error(got.raw)
		}
		d.post("/v1/queues/fees/pull", ``).want(200).is("outcome", "empty")
		d.post("/v1/tasks/"+id+"/reschedule", `{}`).want(200).is("outcome", "rescheduled").is("task.state", "waiting")
		nack(`{}`, "dead").says("task.reason", "3 attempts").is("advice.action", "ask_human")
		d.post("/v1/tasks/"+id+"/cancel", ``).want(409, "task_settled").is("task.state", "dead")
		d.post("/v1/tasks/"+id+"/replay", `{"delay_ms":5000}`).want(200).is("outcome", "replayed").is(
			"task.state", "scheduled",
		)
		d.post("/v1/tasks/"+id+"/replay", ``).want(409, "task_not_settled").is("task.state", "scheduled")
		d.post("/v1/tasks/"+id+"/discard", ``).want(409, "task_not_settled")
		d.post("/v1/tasks/"+id+"/cancel", `{"delay_ms":1}`).want(400, "invalid_request").says("detail", "delay_ms")
		d.post("/v1/tasks/"+id+"/cancel", `{"reason":"enough"}`).want(200).is("task.reason", "enough")
		if got := d.post("/v1/tasks/"+id+"/discard", ``).want(200).is("outcome", "discarded"); contains(got.raw, `"advice"`) {
			t.Error(got.raw)
		}
		d.get("/v1/tasks/"+id).want(404, "unknown_task")
		d.post("/v1/tasks/"+id+"/discard", ``).want(404, "unknown_task")
		d.post("/v1/tasks/q_1/discard", ``).want(400, "invalid_id")

		d.submit(``)
		lease := d.pull()
		d.post("/v1/leases/"+lease+"/nack", `{"dead":true,"delay_ms":1}`).want(400, "invalid_request")
		running := d.get("/v1/tasks?state=running").want(200).str("tasks.0.id")
		d.post("/v1/tasks/"+running+"/cancel", ``).want(409, "held").says("detail", "is running the task").says(
			"advice.message", "revoke its lease",
		)
	})
}

// fresh is a request id that was never used.
func fresh() string { return fmt.Sprintf("%x", freshID()) }

func TestTasksAreListed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		d.put("/v1/queues/mails", ``).want(200)
		ids := []string{
			d.submit(lateFee), d.submit(`,"group":"acme"`),
			d.post("/v1/tasks", `{"queue":"mails","delay_ms":1000}`).str("task.id"),
		}
		d.get("/v1/tasks?queue=none").want(404, "unknown_queue")
		for query, want := range map[string][]string{
			"":                        ids,
			"?queue=fees":             ids[:2],
			"?state=scheduled":        ids[2:],
			"?group=acme":             ids[1:2],
			"?key=account:12":         ids[:1],
			"?key=account:1":          nil,
			"?state=waiting&limit=10": ids[:2],
		} {
			got := d.get("/v1/tasks" + query).want(200)
			for i, id := range want {
				got.is(fmt.Sprintf("tasks.%d.id", i), id)
			}
			if got.at(fmt.Sprintf("tasks.%d", len(want))) != nil {
				t.Errorf("%s: %s", query, got.raw)
			}
		}
		d.get("/v1/tasks?state=open").want(400, "invalid_request")
		d.get("/v1/tasks?key=a//b").want(400, "invalid_key")
		page := d.get("/v1/tasks?limit=2").want(200)
		d.get("/v1/tasks?limit=2&cursor="+page.str("cursor")).want(200).is("tasks.0.id", ids[2])
		d.get("/v1/tasks?queue=fees&cursor="+page.str("cursor")).want(404, "not_found").says("detail", "cursor")

		// What belongs to another namespace is as unknown as what never was.
		other := []string{"Interlock-Namespace", "other"}
		d.get("/v1/tasks/"+ids[0], other...).want(404, "unknown_task")
		d.get("/v1/tasks/"+ids[0]+"?wait_ms=10", other...).want(404, "unknown_task")
		d.post("/v1/tasks/"+ids[0]+"/cancel", ``, other...).want(404, "unknown_task")
		d.get("/v1/queues/fees", other...).want(404, "unknown_queue")
		d.post("/v1/queues/fees/pull", ``, other...).want(404, "unknown_queue")
		lease := d.pull()
		d.post("/v1/leases/"+lease+"/ack", ``, other...).want(404, "unknown_lease")
		if got := d.get("/v1/tasks", other...).want(200); got.at("tasks.0") != nil {
			t.Error(got.raw)
		}
	})
}
