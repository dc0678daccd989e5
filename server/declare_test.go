package server

import (
	"testing"
	"time"
)

// An agent that waits for another's answer declares it, and a deadlock through it is found.
func TestDeclaredWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		one, two := d.session("planner"), d.session("reviewer")
		d.post("/v1/leases", `{"session":"`+one+`","claims":[{"key":"plan"}]}`).want(200)
		declared := d.post(
			"/v1/waits", `{"session":"`+one+`","purpose":"review of the plan","on":{"agent":"reviewer"}}`,
		).want(202).is("outcome", "queued")
		declared.says("advice.message", "end it as soon as")
		ticket := declared.str("ticket.id")
		pass(3 * time.Second)
		edges := d.get("/v1/waits").want(200).is("edges.0.waiter.agent", "planner").is(
			"edges.0.blocker.agent", "reviewer",
		).is("edges.0.key", "").is("edges.0.mode", "")
		if edges.num("edges.0.waited_ms") != 3000 {
			t.Error(edges.raw)
		}
		d.get("/v1/why?agent=planner").want(200).says(
			"text", "planner holds plan (exclusive) for 3 s. planner declares a wait for reviewer.",
		).is("chain.1.does", "awaited")

		// The reviewer wants what the planner holds: neither would ever go on.
		got := d.post("/v1/leases", `{"session":"`+two+`","wait_ms":20000,"claims":[{"key":"plan","mode":"shared"}]}`).want(
			409, "deadlock",
		)
		got.says(
			"detail", "reviewer (you) waits for plan (shared) held by planner, planner waits for reviewer (you)",
		).is("cycle.1.key", "")

		d.delete("/v1/tickets/"+ticket).want(200).is("outcome", "left")
		held := d.post(
			"/v1/leases", `{"session":"`+two+`","on_conflict":"wait","claims":[{"key":"plan","mode":"shared"}]}`,
		).want(202)
		// The other way round: of two equals the one that holds something continues.
		again := d.post("/v1/waits", `{"session":"`+one+`","on":{"agent":"reviewer"}}`).want(202)
		d.get("/v1/tickets/"+held.str("ticket.id")).want(409, "deadlock")
		d.delete("/v1/tickets/" + again.str("ticket.id")).want(200)
		// Of higher priority, the wait for the key continues, and the declared one is the
		// victim.
		held = d.post(
			"/v1/leases", `{"session":"`+two+`","priority":1,"on_conflict":"wait","claims":[{"key":"plan","mode":"shared"}]}`,
		).want(202)
		d.post("/v1/waits", `{"session":"`+one+`","on":{"agent":"reviewer"}}`).want(409, "deadlock").says(
			"detail", "planner (you) waits for reviewer",
		)
		d.delete("/v1/tickets/" + held.str("ticket.id")).want(200)

		// Work under the lease does not wait for it, whatever its priority is.
		d.post("/v1/waits", `{"session":"`+one+`","on":{"agent":"reviewer"},"encloses":true}`).want(202)
		d.post(
			"/v1/leases", `{"session":"`+two+`","priority":1,"on_conflict":"wait","claims":[{"key":"plan","mode":"shared"}]}`,
		).want(409, "deadlock").is("cycle.1.next", "within").is("advice.action", "work_elsewhere").says(
			"detail", "plan (shared) is held by your own lease, the one of planner under which you work",
		)

		// It ends with the session that it is for.
		waiting := d.start(d.request("POST", "/v1/waits", `{"session":"`+one+`","on":{"agent":"reviewer"},"wait_ms":50000}`))
		pass(time.Second)
		d.delete("/v1/sessions/" + two).want(200)
		over := (<-waiting).want(410, "session_ended").is("ended_by", "target_ended")
		over.says("advice.message", "continue without the session")
		d.post("/v1/waits", `{"session":"`+one+`","on":{"agent":"reviewer"}}`).want(404, "unknown_session")
	})
}

func TestDeclaredWaitLimits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		one := d.session("planner")
		d.session("twin")
		d.session("twin")
		name := d.post("/v1/sessions", `{"agent":"solo"}`).want(200).str("session.name")
		d.post("/v1/waits", `{"session":"`+one+`","on":{"agent":"twin"}}`).want(400, "invalid_request").says(
			"detail", "several sessions",
		)
		d.post("/v1/waits", `{"session":"`+one+`","on":{"agent":"planner","flow":"main"}}`).want(400, "invalid_request").says(
			"detail", "itself",
		)
		start := time.Now()
		d.post("/v1/waits", `{"session":"`+one+`","on":{"session":"`+name+`"},"wait_ms":20000,"max_wait_ms":5000}`).want(
			410, "wait_limit",
		)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
		d.post("/v1/waits", `{"agent":"bare","on":{"session":"`+name+`"}}`, "Idempotency-Key", "one").want(202)
		d.post("/v1/waits", `{"agent":"bare","on":{"session":"`+name+`"}}`, "Idempotency-Key", "one").want(202)
		if n := len(d.get("/v1/waits").at("edges").([]any)); n != 1 {
			t.Errorf("%d waits", n)
		}
	})
}
