package server

import (
	"testing"
	"time"
)

// Tasks stand in line like everybody else, and are told apart from agents that wait.
func TestWhyTasksWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		id := d.submit(lateFee)
		pass(12 * time.Second)
		line := d.get("/v1/keys/account:12").want(200).is("state", "waiting").is("line.0.task", id).is("line.0.queue", "fees").is("line.0.agent", "billing-7")
		if line.at("line.0.dormant") != true {
			t.Error(line.raw)
		}
		idle := d.get("/v1/why?key=account:12").want(200)
		idle.is("text", "Nobody holds account:12 at this moment. 1 waiter is in line, first task "+id+
			" of queue fees, which billing-7 submitted, for 12 s; it waits for a worker, and is in nobody's way.")
		idle.is("advice.action", "retry").says("advice.message", "start workers")
		d.get("/v1/tasks/"+id).want(200).says("advice.message", "task "+id+" of queue fees waits for its keys, or for a worker")

		d.acquire("support-2", "account:12")
		if got := d.get("/v1/keys/account:12").want(200); got.at("line.0.dormant") != false {
			t.Error(got.raw)
		}
		held := d.get("/v1/why?key=account:12").want(200)
		held.says("text", "account:12 is held by support-2", "first task "+id).is("chain.0.agent", "support-2")
		d.get("/v1/tasks/"+id).want(200).is("task.blocker", "account:12").says("advice.message", "is 1st in line for account:12")
		d.get("/v1/why?agent=billing-7").want(200).is("text", "billing-7 holds nothing. It waits for nothing.")

		// A task that could not run yet holds up whoever comes later.
		d.acquire("support-2", "account:21")
		both := d.submit(`,"agent":"billing-7","claims":[{"key":"account:20"},{"key":"account:21"}]`)
		d.post("/v1/leases", `{"agent":"audit-2","on_conflict":"wait","claims":[{"key":"account:20"}]}`).want(202)
		waits := d.get("/v1/waits").want(200).is("edges.0.waiter.agent", "audit-2").is("edges.0.blocker.task", both).is("edges.0.blocker.agent", "billing-7")
		if waits.at("edges.0.ahead") != true {
			t.Error(waits.raw)
		}
		behind := d.get("/v1/why?agent=audit-2").want(200).is("chain.1.task", both)
		behind.is("text", "audit-2 holds nothing. audit-2 waits for account:20, behind task "+both+" of billing-7 in line.")
	})
}

func TestEventsOfTasks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		session := d.session("worker")
		id := d.submit(lateFee + `,"backoff_ms":2000`)
		pulled := d.post("/v1/queues/fees/pull", `{"session":"`+session+`"}`).want(200)
		d.post("/v1/leases/"+pulled.str("tasks.0.lease.id")+"/nack", `{"reason":"card refused","delay_ms":5000}`).want(200)
		pass(5 * time.Second)
		d.post("/v1/leases/"+d.pull()+"/ack", `{"result":"secret result"}`).want(200)
		d.post("/v1/tasks/"+id+"/discard", ``).want(200)
		raw := d.get("/v1/events").want(200).raw
		got := lines(t, raw)
		if story := kinds(got); story != "opened queue_set session_opened task_submitted task_handed_out task_attempt_failed ended task_moved task_handed_out task_moved ended task_forgotten" {
			t.Fatal(story)
		}
		for _, secret := range []string{"3500", "secret result", `"l_`, `"s_`} {
			if contains(raw, secret) {
				t.Errorf("the events tell %s", secret)
			}
		}
		for i, want := range map[int]map[string]any{
			1: {"queue": "fees"},
			3: {"task": id, "queue": "fees", "kind": "late_fee", "state": "waiting", "agent": "billing-7", "purpose": "late fee"},
			4: {"task": id, "attempt": 1.0, "agent": "worker", "fence": "1", "flow": id},
			5: {"task": id, "attempt": 1.0, "agent": "worker", "reason": "nack", "outcome": "card refused", "state": "scheduled", "due_in_ms": 5000.0},
			6: {"reason": "nack"},
			7: {"task": id, "state": "waiting"},
			9: {"task": id, "state": "done", "attempt": 2.0},
		} {
			for name, value := range want {
				if got[i][name] != value {
					t.Errorf("event %d: %s is %v, want %v", i, name, got[i][name], value)
				}
			}
		}
	})
}
