package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
)

// Tasks stand in line like all others, and are distinguished from agents that wait.
func TestWhyTasksWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		id := d.submit(lateFee)
		pass(12 * time.Second)
		line := d.get("/v1/keys/account:12").want(200).is("state", "waiting").is("waiters.0.task", id).is(
			"waiters.0.queue", "fees",
		).is("waiters.0.agent", "billing-7")
		if line.at("waiters.0.dormant") != true {
			t.Error(line.raw)
		}
		idle := d.get("/v1/why?key=account:12").want(200)
		idle.is("text", "account:12 has no holder at the moment. 1 waiter is in line, first task "+id+
			" of queue fees, which billing-7 submitted, for 12 s; it waits for a worker, and blocks no other request.")
		idle.is("advice.action", "retry").says("advice.message", "start workers")
		d.get("/v1/tasks/"+id).want(200).says(
			"advice.message", "task "+id+" of queue fees waits for its keys or for a worker",
		)

		d.acquire("support-2", "account:12")
		if got := d.get("/v1/keys/account:12").want(200); got.at("waiters.0.dormant") != false {
			t.Error(got.raw)
		}
		held := d.get("/v1/why?key=account:12").want(200)
		held.says("text", "account:12 is held by support-2", "first task "+id).is("chain.0.agent", "support-2")
		d.get("/v1/tasks/"+id).want(200).is("task.blocker", "account:12").says(
			"advice.message", "is 1st in line for account:12",
		)
		d.get("/v1/why?agent=billing-7").want(200).is("text", "billing-7 holds nothing. It is not waiting.")

		// A task that could not run yet holds up later ones.
		d.acquire("support-2", "account:21")
		both := d.submit(`,"agent":"billing-7","claims":[{"key":"account:20"},{"key":"account:21"}]`)
		d.post("/v1/leases", `{"agent":"audit-2","on_conflict":"wait","claims":[{"key":"account:20"}]}`).want(202)
		waits := d.get("/v1/waits").want(200).is("edges.0.waiter.agent", "audit-2").is("edges.0.blocker.task", both).is(
			"edges.0.blocker.agent", "billing-7",
		)
		if waits.at("edges.0.ahead") != true {
			t.Error(waits.raw)
		}
		behind := d.get("/v1/why?agent=audit-2").want(200).is("chain.1.task", both)
		behind.is("text", "audit-2 holds nothing. audit-2 waits for account:20, behind task "+both+" of billing-7 in line.")
	})
}

// Workers are idle, and none of them may hold a task: why names the rules that keep them
// from it, and what to do.
func TestWhyBarred(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		worker := interlock.RoleAgent | interlock.RoleWorker
		d, as := credentialed(
			t,
			interlock.Principal{Name: "ops", Roles: interlock.AllRoles, Queues: []string{"*"}},
			interlock.Principal{Name: "ann", Roles: interlock.RoleAgent, Groups: []string{"closing"}},
			interlock.Principal{Name: "plain", Roles: worker, Queues: []string{"*"}},
			interlock.Principal{Name: "red", Roles: worker, Queues: []string{"*"}, Groups: []string{"red"}},
			interlock.Principal{Name: "closer", Roles: worker, Queues: []string{"*"}, Groups: []string{"closing"}},
		)
		d.put("/v1/queues/books", ``, as["ops"]...).want(200)
		d.put(
			"/v1/patterns/month",
			`{"pattern":"month:{id}","allow":[{"principal":"group:closing"},{"principal":"*","modes":["shared"]}]}`,
			as["ops"]...,
		).want(200)
		submit := func(claims string) string {
			t.Helper()
			return d.post(
				"/v1/tasks", `{"queue":"books","agent":"ann-1","group":"closing","claims":[`+claims+`]}`, as["ann"]...,
			).want(202).str("task.id")
		}
		pull := func(by string) <-chan *reply {
			idle := d.start(d.request("POST", "/v1/queues/books/pull", `{"agent":"`+by+`","wait_ms":50000}`, as[by]...))
			synctest.Wait()
			return idle
		}
		why := func(query string) *reply {
			t.Helper()
			return d.get("/v1/why?"+query, as["ann"]...).want(200)
		}
		id := submit(`{"key":"month:7"}`)
		if idle := why("key=month:7"); strings.Contains(idle.raw, "may hold") {
			t.Errorf("no worker is idle: %s", idle.raw)
		}
		idle := []<-chan *reply{pull("plain"), pull("plain"), pull("red")}
		const text = "of ann-1 waits for a worker with the required rights: 3 workers are idle in queue books, but " +
			"1 may not act for its group closing and the allow list of pattern month denies 2 mode exclusive; until then it " +
			"blocks no other request."
		const next = "start a worker for queue books with a credential that may act for group closing and may claim in " +
			"mode exclusive by pattern month, " +
			"or ask an operator to change that rule; the task is then dispatched automatically"
		for _, query := range []string{"key=month:7", "agent=ann-1"} {
			why(query).says("text", "Task "+id+" "+text).is("advice.action", "ask_human").is("advice.message", next)
		}
		d.get("/v1/tasks/"+id, as["ann"]...).want(200).says("advice.message", "no idle worker has them", "look up why")

		// What holds its key is what it waits for then.
		lease := d.post("/v1/leases", `{"claims":[{"key":"month:7"}]}`, as["closer"]...).want(200).str("lease.id")
		if held := why("key=month:7"); strings.Contains(held.raw, "may hold") {
			t.Errorf("somebody holds the key: %s", held.raw)
		}
		d.post("/v1/leases/"+lease+"/release", ``, as["closer"]...).want(200)
		why("key=month:7").says("text", text)
		(<-pull("closer")).want(200).is("tasks.0.task.id", id)
		if held := why("key=month:7"); strings.Contains(held.raw, "may hold") {
			t.Errorf("a worker has it: %s", held.raw)
		}
		for _, pulled := range idle {
			(<-pulled).want(200).is("outcome", "empty")
		}
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
		if story := kinds(got); story != "opened queue_set session_opened task_submitted task_dispatched "+
			"task_attempt_failed ended task_moved task_dispatched task_moved ended task_forgotten" {
			t.Fatal(story)
		}
		for _, secret := range []string{"3500", "secret result", `"l_`, `"s_`} {
			if contains(raw, secret) {
				t.Errorf("the events tell %s", secret)
			}
		}
		for i, want := range map[int]map[string]any{
			1: {"queue": "fees"},
			3: {
				"task": id, "queue": "fees", "kind": "late_fee", "state": "waiting", "agent": "billing-7", "purpose": "late fee",
			},
			4: {"task": id, "attempt": 1.0, "agent": "worker", "fence": "1", "flow": id},
			5: {
				"task": id, "attempt": 1.0, "agent": "worker", "reason": "nack", "outcome": "card refused", "state": "scheduled",
				"due_in_ms": 5000.0,
			},
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

// An agent that may not claim a key is not advised to; and a task without an agent's name goes by
// the credential that submitted it.
func TestWhyMayNotClaim(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d, as := credentialed(
			t,
			interlock.Principal{Name: "ops", Roles: interlock.AllRoles, Queues: []string{"*"}},
			interlock.Principal{Name: "ann", Roles: interlock.RoleAgent, Groups: []string{"closing"}},
			interlock.Principal{Name: "rea", Roles: interlock.RoleAgent, Groups: []string{"audit"}},
			interlock.Principal{Name: "eve", Roles: interlock.RoleAgent},
			interlock.Principal{Name: "view", Roles: interlock.RoleViewer},
		)
		d.put("/v1/queues/books", ``, as["ops"]...).want(200)
		d.put(
			"/v1/patterns/month",
			`{"pattern":"month:{id}","allow":[{"principal":"group:closing"},{"principal":"group:audit","modes":["shared"]}]}`,
			as["ops"]...,
		).want(200)
		why := func(by string) *reply {
			t.Helper()
			return d.get("/v1/why?key=month:7", as[by]...).want(200)
		}
		why("ann").is("advice.action", "retry").is("advice.message", "acquire it")
		why("rea").is("advice.action", "retry").is("advice.message", "acquire it in mode shared")
		why("eve").is("advice.action", "ask_human").says("advice.message", `pattern "month" does not allow "eve" to claim month:7`)
		why("view").is("advice.action", "ask_human").says("advice.message", `credential "view" may not hold leases`)

		id := d.post(
			"/v1/tasks", `{"queue":"books","group":"closing","claims":[{"key":"month:7"}]}`, as["ann"]...,
		).want(202).str("task.id")
		why("ann").says("text", "first task "+id+" of queue books, which credential ann submitted").says(
			"advice.message", "acquire it: the only waiters are tasks",
		)
		why("eve").is("advice.action", "ask_human").says("advice.message", "does not allow", "start workers for their queue")
	})
}
