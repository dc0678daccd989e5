package server

import "testing"

// In a namespace with strict order a request out of it is refused with the order in
// words, before it waits for anything.
func TestStrictOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.put("/v1/namespace", `{"strict_order":true}`).want(200)
		s := d.session("billing-7")
		ask := func(claims string) *reply {
			return d.post("/v1/leases", `{"session":"`+s+`","on_conflict":"wait","claims":[`+claims+`]}`)
		}
		ask(`{"key":"b"}`).want(200)
		got := ask(`{"key":"a"}`).want(409, "key_order").is("key", "a").is("advice.action", "fix_request")
		got.says("detail", "b").says("advice.message", "in ascending order")
		if got.at("retryable") != false {
			t.Error(got.raw)
		}
		ask(`{"key":"c"},{"key":"d"}`).want(200)
		ask(`{"key":"b"}`).want(200)
		// A flow of its own has an order of its own.
		d.post("/v1/leases", `{"session":"`+s+`","flow":"other","claims":[{"key":"a"}]}`).want(200)
	})
}

// A deadlock's victim also loses what the others wait for, where the pattern demands it.
func TestDeadlockRevokes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.pattern("account", `{"pattern":"account:{id}","on_deadlock":"revoke"}`)
		one, two := d.session("one"), d.session("two")
		d.post("/v1/leases", `{"session":"`+one+`","claims":[{"key":"account:1"}]}`).want(200)
		lost := d.post("/v1/leases", `{"session":"`+two+`","claims":[{"key":"account:2"}]}`).want(200).str("lease.id")
		d.post("/v1/leases", `{"session":"`+one+`","on_conflict":"wait","claims":[{"key":"account:2"}]}`).want(202)
		d.post("/v1/leases", `{"session":"`+two+`","on_conflict":"wait","claims":[{"key":"account:1"}]}`).want(
			409, "deadlock",
		)
		beat := d.post("/v1/sessions/"+two+"/heartbeat", "").want(200).is("losses.0.lease.id", lost).is(
			"losses.0.lease.ended_by", "deadlock",
		)
		beat.says("losses.0.detail", "deadlock").says("losses.0.advice.message", "start nothing new")
	})
}

// A holder of low priority that waits does so with the priority of its waiter.
func TestInheritedPriority(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		low, high := d.session("low"), d.session("high")
		d.acquire("thinker", "b")
		d.post("/v1/leases", `{"session":"`+low+`","claims":[{"key":"a"}]}`).want(200)
		d.post("/v1/leases", `{"session":"`+low+`","priority":-5,"on_conflict":"wait","claims":[{"key":"b"}]}`).want(202)
		if got := d.get("/v1/keys/b").want(200); got.num("waiters.0.priority") != -5 {
			t.Error(got.raw)
		}
		ticket := d.post(
			"/v1/leases", `{"session":"`+high+`","priority":50,"on_conflict":"wait","claims":[{"key":"a"}]}`,
		).want(202).str("ticket.id")
		if got := d.get("/v1/keys/b").want(200); got.num("waiters.0.priority") != 50 {
			t.Error(got.raw)
		}
		d.delete("/v1/tickets/" + ticket).want(200)
		if got := d.get("/v1/keys/b").want(200); got.num("waiters.0.priority") != -5 {
			t.Error(got.raw)
		}
	})
}
