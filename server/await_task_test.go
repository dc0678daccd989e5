package server

import (
	"testing"
	"time"
)

// A caller that waits for a reply while its writer waits for the caller's key would wait for ever.
func TestAReplyThatCannotCome(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newMailbox(t)
		ann, banker := d.session("ann"), d.session("banker")
		d.post("/v1/leases", `{"session":"`+ann+`","claims":[{"key":"k"}]}`).want(200)
		asking := d.start(d.request("POST", "/v1/mailbox/account:1", `{"session":"`+ann+`","priority":1,"wait_ms":50000}`))
		pass(time.Second)
		id := d.get("/v1/tasks").want(200).str("tasks.0.id")
		d.get("/v1/waits").want(200).is("edges.0.waiter.agent", "ann").is("edges.0.task", id)
		idle := d.get("/v1/why?agent=ann").want(200).is("chain.0.awaits", id)
		idle.says("text", "ann waits for the end of task "+id+", which is in line.")
		d.post("/v1/queues/bank/pull", `{"session":"`+banker+`"}`).want(200)
		d.get("/v1/why?agent=ann").want(200).says("text", "ann waits for the end of task "+id+", which banker is running.")

		d.post(
			"/v1/leases", `{"session":"`+banker+`","flow":"`+id+`","priority":2,"on_conflict":"wait","claims":[{"key":"k"}]}`,
		).want(202)
		refused := (<-asking).want(409, "deadlock").is("task.id", id).is("task.state", "running")
		refused.says("detail", "it cannot finish while you wait").is("cycle.0.agent", "ann")

		// Nor does it help to ask after it.
		d.get("/v1/tasks/"+id+"?wait_ms=50000&session="+ann).want(409, "deadlock").is("task.id", id)
		d.get("/v1/tasks/"+id+"?wait_ms=1000&session="+ann+"&flow=other").want(200).is("task.state", "running")
		d.get("/v1/tasks/"+id+"?session=x").want(400, "invalid_id")
		d.get("/v1/tasks/"+id+"?session=").want(400, "invalid_request")
		d.delete("/v1/sessions/" + ann).want(200)
		d.get("/v1/tasks/"+id+"?wait_ms=1000&session="+ann).want(410, "session_ended")
		d.get("/v1/tasks/"+id+"?wait_ms=1000&session="+banker+"&flow="+id).want(400, "invalid_request").says(
			"detail", "is running the task",
		)
	})
}

// A worker with a session that forgets the flow of its task would wait for itself.
func TestWaitForOwnTask(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newMailbox(t)
		banker := d.session("banker")
		id := d.post("/v1/mailbox/account:1", `{"agent":"ann"}`).want(202).str("message.id")
		d.post("/v1/queues/bank/pull", `{"session":"`+banker+`"}`).want(200)
		next := `send flow "` + id + `"`
		acquire := func(fields string) *reply {
			return d.post("/v1/leases", `{"session":"`+banker+`"`+fields+`,"wait_ms":1000,"claims":[{"key":"account:1"}]}`)
		}
		acquire("").want(400, "invalid_request").says("detail", next)
		acquire(`,"flow":"` + id + `"`).want(200)
		acquire(`,"flow":"main"`).want(202)
		d.post("/v1/mailbox/account:1", `{"session":"`+banker+`","wait_ms":50000}`).want(400, "invalid_request").says(
			"detail", next,
		)
		d.get("/v1/tasks/"+id+"?wait_ms=50000&session="+banker).want(400, "invalid_request").says("detail", next)
		if n := len(d.get("/v1/tasks").want(200).at("tasks").([]any)); n != 1 {
			t.Errorf("%d tasks", n)
		}
	})
}
