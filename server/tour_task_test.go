package server

import (
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// fullTask has everything that a task can have.
func fullTask() engine.Task {
	t := engine.Task{Reason: message.Plain("card refused"), Attempts: fullAttempts(), Approval: fullApproval()}
	t.Task = interlock.Task{
		ID: interlock.TaskID{1}, Queue: "fees", Kind: "late_fee", Claims: fullLease().Claims[:2],
		Payload: []byte(`{"cents": 3500}`), Purpose: "late fee",
		Group: "acme", Priority: 3, State: interlock.TaskWaiting, Agent: "billing-7", Session: "quiet-otter", Flow: "main",
		Principal: "ops",
		Sender:    "session:quiet-otter", Age: time.Minute, Due: time.Second, Deadline: time.Hour, Attempt: 1, MaxAttempts: 5,
		Position: 2, ETA: 40 * time.Second, Blocker: "account:1", Barred: true,
		Result: []byte(`{"charged": 3500}`), DoneBy: "teller", Settled: time.Second,
	}
	return t
}

func fullAttempts() []engine.Attempt {
	return []engine.Attempt{{Reason: message.Plain("card refused"), Attempt: interlock.Attempt{
		Number: 1, Agent: "worker-1", Session: "loud-owl", Fence: 7, EndedBy: "nack", Held: time.Second,
		Age: 2 * time.Second,
	}}}
}

func fullApproval() *engine.Approval {
	return &engine.Approval{Reason: message.Plain("within policy"), Approval: interlock.Approval{
		Question: "may I charge 35 EUR?", Agent: "worker-1", Asked: time.Minute, Left: time.Hour, OnLimit: interlock.Denied,
		Verdict: interlock.Approved, By: "ann", Principal: "agent-7", Needed: 2, UsedIn: 1,
		Approvals: []interlock.Endorsement{{Principal: "agent-8", By: "bob", Reason: "fine"}},
		Stale:     fullStale(), StaleMore: true,
	}}
}

// tourTaskAnswers sees each answer about tasks with all that it may have. Those of
// effects give one task.
func tourTaskAnswers(d *door, send func(method, path, effect string, status int) *reply) {
	for _, path := range []string{
		"/v1/tasks/{id}/cancel", "/v1/tasks/{id}/reschedule", "/v1/tasks/{id}/replay", "/v1/tasks/{id}/discard",
		"/v1/leases/{id}/nack",
		"/v1/leases/{id}/ask", "/v1/approvals/{id}",
	} {
		got := send("POST", path, "task", 200).is("task.id", fullTask().ID.String()).is(
			"task.attempts.0.ended_by", "nack",
		).is("task.approval.by", "ann").is("task.approval.principal", "agent-7")
		got.is("task.approval.packet.stale.0.key", "account:1").is("task.blocker", "account:1").says("warnings.0", "spelled")
		if got.num("task.payload.cents") != 3500 || got.num("task.result.charged") != 3500 ||
			got.num("task.approval.used_in") != 1 {
			d.Error(got.raw)
		}
		send("POST", path, "settled", 409).is("code", "task_settled").is("task.queue", "fees").says(
			"advice.message", "read the task",
		)
	}
	send("POST", "/v1/tasks", "task", 202).is("outcome", "submitted")
	if sent := send("POST", "/v1/mailbox/{key}", "task", 202).is("outcome", "sent").is(
		"message.sender", "session:quiet-otter",
	); sent.num("reply.charged") != 3500 {
		d.Error(sent.raw)
	}
	acked := send("POST", "/v1/leases/{id}/ack", "acked", 200).is("outcome", "done").is("version", "57").is(
		"documents.0.key", "account:1",
	)
	acked.is("task.id", fullTask().ID.String()).says("advice.message", "15 of 30")
	send("POST", "/v1/leases/{id}/ack", "stale", 412).is("packet.stale.0.key", "account:1")
	moved := send("POST", "/v1/leases/{id}/ack", "moved", 410).is("code", "task_moved").is("task.state", "waiting").is(
		"holders.0.agent", "a",
	)
	moved.is("advice.action", "stop").says("advice.message", "pull the next task")
	pulled := send("POST", "/v1/queues/{queue}/pull", "handed", 200).is("outcome", "granted").is(
		"tasks.0.task.id", fullTask().ID.String(),
	)
	pulled.is("tasks.0.lease.fence", "7").is("tasks.0.notes.0.text", "n").is("tasks.0.as_of", "57").is(
		"tasks.0.documents.0.principal", "ops",
	)
	if pulled.num("tasks.0.documents.0.value.balance") != 65 {
		d.Error(pulled.raw)
	}
}

// taskEffects are the answers that tourTaskAnswers looks for.
func taskEffects() map[string]engine.Effect {
	lease := fullLease()
	lease.Notes = []interlock.Note{{Key: "account:1", Agent: "a", Text: "n"}}
	tasks := []engine.Task{fullTask()}
	return map[string]engine.Effect{
		"task": {
			Outcome: engine.Done, Tasks: tasks,
			Warnings: []*message.Text{message.Plain("key account:1 is spelled almost like the live key acct:1")},
		},
		"settled": {
			Outcome: engine.Refused, Code: interlock.CodeTaskSettled, Message: message.Plain("the task is dead"), Tasks: tasks,
		},
		"moved": {
			Outcome: engine.Refused, Code: interlock.CodeTaskMoved, Message: message.Plain("it is over"), Tasks: tasks,
			Conflict: fullConflict(),
		},
		"acked": {
			Outcome: engine.Done, Tasks: tasks, Version: 57, Documents: fullDocuments(),
			Warnings:   []*message.Text{message.Plain("key")},
			Contention: &interlock.Contention{Commits: 15, Conflicts: 15},
		},
		"handed": {
			Outcome: engine.Granted,
			Handed: []engine.Assignment{{Task: tasks[0], Assignment: interlock.Assignment{
				Lease: lease, Documents: fullDocuments(), AsOf: 57,
			}}},
		},
	}
}

const fullQueue = `"paused":true,"drain":true,"max_attempts":3,"backoff_ms":1000,"max_backoff_ms":60000,"ttl_ms":20000,"grace_ms":1000,` +
	`"max_hold_ms":600000,"stall_ms":60000,"max_running":10,"max_tasks":1000,"groups":[{"name":"acme","weight":2,"max":5}],"pull":["w","group:acme"],"submit":["*"],"admin":["ops"],"approvers":["ann"],"min_approvals":2,"approval":"reuse"`

// tourTasks has tasks done in all ways.
func tourTasks(d *door) {
	d.put("/v1/queues/full", "{"+fullQueue+"}").want(200).is("outcome", "set")
	for _, path := range []string{"/v1/queues/full", "/v1/queues"} {
		if got := d.get(path).want(200).raw; !strings.Contains(got, `"name":"full",`+fullQueue) {
			d.Errorf("%s shows %s, want %s", path, got, fullQueue)
		}
	}
	d.delete("/v1/queues/full").want(200).is("outcome", "deleted")
	d.delete("/v1/queues/full").want(404, "unknown_queue")
	d.get("/v1/queues/full").want(404, "unknown_queue").says("detail", `"full"`)
	d.put("/v1/queues/tour", ``).want(200)
	d.post("/v1/queues/tour/pull", ``).want(200).is("outcome", "empty")
	id := d.post("/v1/tasks", `{"queue":"tour","kind":"sum"}`).want(202).str("task.id")
	d.get("/v1/tasks/"+id).want(200).is("advice.action", "work_elsewhere")
	pass(time.Second)
	if got := d.get("/v1/queues/tour").want(200); got.num("queue.oldest_ms") != 1000 ||
		got.num("queue.tasks.waiting") != 1 {
		d.Error(got.raw)
	}
	waiting := d.start(d.request("POST", "/v1/tasks", `{"queue":"tour","wait_ms":50000}`))
	pass(time.Second)
	pulled := d.post("/v1/queues/tour/pull", `{"agent":"w","max":2}`).want(200).is("tasks.0.task.id", id)
	for _, n := range []string{"0", "1"} {
		d.post("/v1/leases/"+pulled.str("tasks."+n+".lease.id")+"/ack", `{"result":{"n":1}}`).want(200)
	}
	(<-waiting).want(200).is("outcome", "done")
	d.get("/v1/tasks/" + id + "?wait_ms=1").want(200)
	page := d.get("/v1/tasks?queue=tour&limit=1").want(200).is("tasks.0.id", id)
	d.get("/v1/tasks?queue=tour&limit=1&cursor=" + page.str("cursor")).want(200)
	d.get("/v1/tasks?cursor="+page.str("cursor")).want(404, "not_found")
	d.get("/v1/tasks?queue=none").want(404, "unknown_queue")
	d.get("/v1/approvals").want(200)
	var parked []string
	for _, key := range []string{"asking:1", "asking:2"} {
		parked = append(parked, "/v1/leases/"+d.acquire("asker", key))
		d.post(parked[len(parked)-1]+"/park", `{"reason":"may I?"}`).want(200)
	}
	for range 2 {
		d.post("/v1/tasks", `{"queue":"tour","approval":{"question":"may I?"}}`).want(202)
	}
	asking := d.get("/v1/approvals?limit=1").want(200)
	d.get("/v1/approvals?limit=1&cursor=" + asking.str("cursor")).want(200)
	fence := asking.str("leases.0.fence")
	d.post("/v1/approvals/"+fence, `{"verdict":"approved","by":"ann","reason":"so"}`).want(200)
	for _, path := range parked {
		d.post(path+"/release", "").want(200)
	}
	d.get("/v1/approvals?cursor="+page.str("cursor")).want(404, "not_found")
	d.get("/v1/tasks/q_00000000000000000000000000000001").want(404, "unknown_task")
	for _, action := range []string{"pause", "drain", "resume"} {
		d.post("/v1/queues/tour/"+action, ``).want(200)
	}
	d.post("/v1/tasks", `{"queue":"tour","claims":[{"key":"tour:1"}]}`).want(202)
	d.get("/v1/keys/tour:1").want(200).is("waiters.0.queue", "tour")
	d.acquire("ann", "tour:2")
	d.post("/v1/tasks", `{"queue":"tour","claims":[{"key":"tour:2"},{"key":"tour:3"}]}`).want(202)
	d.post("/v1/leases", `{"agent":"bob","on_conflict":"wait","claims":[{"key":"tour:3"}]}`).want(202)
	d.get("/v1/why?agent=bob").want(200).says("text", "behind task")
	tourShown(d, "Party", func(j *jsonOut) {
		writeParty(j, "", &engine.FlowRef{Agent: "ann", Task: interlock.TaskID{1}})
	})
	tourShown(d, "Event", func(j *jsonOut) {
		writeEvent(
			j,
			&record.Event{
				Kind: record.AttemptFailed, ID: [16]byte{1}, Generation: 1, Op: uint8(interlock.TaskScheduled), Due: time.Second,
				SessionName: "loud-owl",
			},
			8, 9,
		)
	})
}

// tourMailbox sends messages to a single writer.
func tourMailbox(d *door) {
	d.put("/v1/queues/bank", ``).want(200)
	d.put("/v1/writers/ledger", `{"queue":"bank"}`).want(404, "unknown_pattern")
	d.put("/v1/writers/ledger", `{"queue":"none","pattern":"ledger:{id}"}`).want(404, "unknown_queue")
	d.put("/v1/writers/ledger", `{"queue":"bank","pattern":"ledger:{id}"}`).want(200).is("outcome", "set")
	d.get("/v1/writers").want(200).is("writers.0.name", "ledger").is("writers.0.pattern", "ledger:{id}").is(
		"writers.0.queue", "bank",
	)
	d.get("/v1/patterns/ledger").want(200).is("writer_queue", "bank").is("write", "single-writer")
	waiting := d.start(d.request(
		"POST", "/v1/mailbox/ledger:1", `{"kind":"debit","body":{"cents":5},"agent":"ann","wait_ms":50000}`,
	))
	pass(1)
	lease := d.post("/v1/queues/bank/pull", `{"session":"`+d.session("banker")+`"}`).want(200).str("tasks.0.lease.id")
	d.post("/v1/leases/"+lease+"/ack", `{"result":{"ok":true},"writes":[{"key":"ledger:1","put":{"cents":5}}]}`).want(200)
	(<-waiting).want(200).is("outcome", "replied").at("reply.ok")
	id := d.post("/v1/mailbox/ledger:1", ``).want(202).str("message.id")
	d.post("/v1/tasks/"+id+"/cancel", `{"reason":"enough"}`).want(200)
	d.get("/v1/mailbox/ledger:1/log").want(200).is("entries.0.worker", "banker").is(
		"entries.1.reason", "enough",
	).is("next", "3")
	// A caller waits for the end of a message while its writer waits for the caller.
	ann, banker := d.session("ann"), d.session("banker")
	d.post("/v1/leases", `{"session":"`+ann+`","claims":[{"key":"tour:9"}]}`).want(200)
	id = d.post("/v1/mailbox/ledger:2", ``).want(202).str("message.id")
	lease = d.post("/v1/queues/bank/pull", `{"session":"`+banker+`"}`).want(200).str("tasks.0.lease.id")
	following := d.start(d.request("GET", "/v1/tasks/"+id+"?wait_ms=50000&session="+ann, ""))
	pass(1)
	d.get("/v1/waits").want(200)
	d.get("/v1/overview").want(200)
	d.get("/v1/why?agent=ann").want(200).says("text", "which banker is running")
	d.post(
		"/v1/leases",
		`{"session":"`+banker+`","flow":"`+id+`","priority":9,"on_conflict":"wait","claims":[{"key":"tour:9"}]}`,
	).want(202)
	(<-following).want(409, "deadlock")
	d.post("/v1/leases/"+lease+"/ack", ``).want(200)
	d.delete("/v1/sessions/" + ann).want(200)
	d.get("/v1/tasks/"+d.post("/v1/tasks", `{"queue":"bank"}`).str("task.id")+"?wait_ms=1&session="+ann).want(
		410, "session_ended",
	)
	d.delete("/v1/writers/ledger").want(200).is("outcome", "deleted")
	d.delete("/v1/writers/ledger").want(409, "no_writer")
	d.delete("/v1/writers/none").want(404, "unknown_pattern")
	d.delete("/v1/patterns/ledger").want(200)
}
