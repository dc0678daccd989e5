package server

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// A cap of 2 and ten callers at once: exactly 2 are admitted and 8 learn when to come back.
func TestCapOfTwo(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.pattern("runs", `{"pattern":"org:{org}/runs","capacity":2}`)
		replies := make([]<-chan *reply, 10)
		for i := range replies {
			replies[i] = d.start(d.request(
				"POST", "/v1/leases", fmt.Sprintf(`{"agent":"run-%d","claims":[{"key":"org:acme/runs","permits":1}]}`, i),
			))
		}
		admitted := 0
		for _, ch := range replies {
			got := <-ch
			if got.status == 200 {
				admitted++
				continue
			}
			got.want(429, "at_capacity").is("conflict_kind", "capacity").is("key", "org:acme/runs").is("advice.action", "wait")
			if got.at("retryable") != true || got.header.Get("Retry-After") == "" || got.num("capacity.permits") != 2 ||
				got.num("capacity.used") != 2 {
				t.Error(got.raw)
			}
			if got.num("holders.0.permits") != 1 || len(got.at("holders").([]any)) != 2 {
				t.Error(got.raw)
			}
			got.says("detail", "org:acme/runs has 2 of 2 permits taken by run-")
		}
		if admitted != 2 {
			t.Errorf("%d were admitted", admitted)
		}
		if got := d.figure(`interlock_acquires_total{outcome="at_capacity"}`); got != "8" {
			t.Errorf("%s were counted", got)
		}
	})
}

// The answer reports what keeps the permits that are left from a claimant group.
func TestGroupLimits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.pattern("gpu", `{"pattern":"gpu:{pool}","capacity":4,"groups":[{"name":"prod","min":2},{"name":"batch","max":1}]}`)
		take := func(group string) *reply {
			return d.post("/v1/leases", `{"agent":"a","group":"`+group+`","claims":[{"key":"gpu:0","permits":1}]}`)
		}
		take("batch").want(200)
		take("batch").want(429, "at_capacity").
			says(
				"detail",
				"gpu:0 has 1 of 4 permits taken by a (1 permit, live), and group batch has 1 of its 1, and 2 free ones are "+
					"reserved for group prod",
			)
		take("bach").want(200).says("warnings.0", `key gpu:0 has no group "bach"`, `"prod", "batch"`)
	})
}

func TestPermits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.pattern("gpu", `{"pattern":"gpu:{pool}","capacity":4,"groups":[{"name":"train","min":1,"max":2}]}`)
		d.post("/v1/leases", `{"claims":[{"key":"cpu:1","permits":1}]}`).want(400, "no_capacity")
		d.post("/v1/leases", `{"claims":[{"key":"gpu:a","permits":5}]}`).want(400, "too_many_permits").says(
			"detail", "at most 3",
		).says("advice.message", "waiting does not help")
		d.post("/v1/leases", `{"group":"train","claims":[{"key":"gpu:a","permits":3}]}`).want(400, "too_many_permits").says(
			"detail", `of group "train" can have at most 2`,
		)

		held := d.post(
			"/v1/leases", `{"agent":"serve","purpose":"inference","claims":[{"key":"gpu:a","permits":3}]}`,
		).want(200)
		if held.is("lease.claims.0.mode", "permits").num("lease.claims.0.permits") != 3 {
			t.Error(held.raw)
		}
		// One is kept free for the group, so no other claimant gets it.
		kept := d.post("/v1/leases", `{"claims":[{"key":"gpu:a","permits":1}]}`).want(429, "at_capacity")
		kept.says(
			"detail",
			`gpu:a has 3 of 4 permits taken by serve (3 permits, live, "inference"), and 1 free one is reserved for group train`,
		)
		if kept.is("capacity.groups.0.name", "train").num("capacity.groups.0.min") != 1 ||
			kept.num("capacity.groups.0.max") != 2 || kept.num("capacity.groups.0.used") != 0 {
			t.Error(kept.raw)
		}
		d.get("/v1/why?key=gpu:a").want(200).says("text", "Of these group train has 0 (min 1, max 2)")
		d.post("/v1/leases", `{"group":"train","claims":[{"key":"gpu:a","permits":1}]}`).want(200).is("lease.group", "train")

		queued := d.post(
			"/v1/leases", `{"agent":"next","on_conflict":"wait","claims":[{"key":"gpu:a","permits":2}]}`,
		).want(202)
		queued.is("conflict_kind", "capacity").says(
			"advice.message",
			"gpu:a has 4 of 4 permits taken by serve (3 permits, live, \"inference\") and 1 more; you are 1st of 1 in line",
		)
		view := d.get("/v1/keys/gpu:a").want(200).is("pattern", "gpu").is("waiters.0.mode", "permits")
		if view.num("capacity.permits") != 4 || view.num("capacity.used") != 4 || view.num("holders.0.permits") != 3 {
			t.Error(view.raw)
		}
		why := d.get("/v1/why?key=gpu:a").want(200)
		why.says(
			"text",
			"gpu:a has 4 of 4 permits taken by serve (3 permits, live, \"inference\") and 1 more. Of these group train has 1 "+
				"(min 1, max 2). 1 waiter is in line, first next",
		)

		d.post("/v1/leases/"+held.str("lease.id")+"/release", "").want(200)
		got := d.get("/v1/tickets/" + queued.str("ticket.id")).want(200)
		if n, _ := got.at("lease.claims.0.permits").(json.Number).Int64(); n != 2 {
			t.Error(got.raw)
		}
		d.post("/v1/leases", `{"claims":[{"key":"cpu:1","permits":1}]}`).want(400, "no_capacity").says(
			"advice.message", "set a capacity or a rate in its pattern",
		)
	})
}

func TestRate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.pattern("model", `{"pattern":"model:{name}","rate":1,"per_ms":10000,"burst":2}`)
		d.get("/v1/why?key=model:x").want(200).says("text", "model:x is free", "2 of 2 tokens left")
		d.post("/v1/leases", `{"claims":[{"key":"model:x","permits":2}]}`).want(200)
		pass(4 * time.Second)
		got := d.post("/v1/leases", `{"claims":[{"key":"model:x","permits":1}]}`).want(429, "rate_limited").is(
			"conflict_kind", "rate",
		)
		if got.num("capacity.tokens") != 2 || got.num("capacity.available") != 0 || got.num("capacity.refill_ms") != 6000 ||
			got.header.Get("Retry-After") != "6" {
			t.Errorf("%s %v", got.raw, got.header)
		}
		got.says("detail", "model:x has 0 of 2 tokens left, the next in 6 s").says(
			"advice.message", "try again in 6 s or later, with jitter",
		)
		d.get("/v1/why?key=model:x").want(200).says("text", "model:x has 0 of 2 tokens left, the next in 6 s").says(
			"advice.message", "wait in line for it",
		)
		// A waiter gets it in the moment it is there.
		start := time.Now()
		d.post("/v1/leases", `{"wait_ms":50000,"claims":[{"key":"model:x","permits":1}]}`).want(200)
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("it took %v", took)
		}
		d.post("/v1/leases", `{"claims":[{"key":"model:x","permits":3}]}`).want(400, "too_many_permits").says(
			"detail", "at most 2",
		)
	})
}

func TestQuotas(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.put("/v1/namespace", `{"quota":{"keys":2,"leases":3,"waiters":1,"sessions":1}}`).want(200)
		d.session("one")
		d.post("/v1/sessions", `{}`).want(429, "too_many_sessions").says("detail", "limit of 1 sessions")
		for _, key := range []string{"a", "b"} {
			d.acquire("x", key)
		}
		d.post("/v1/leases", `{"claims":[{"key":"c"}]}`).want(429, "too_many_keys").is("advice.action", "retry").says(
			"detail", "2 keys in use",
		)
		d.post("/v1/leases", `{"on_conflict":"wait","claims":[{"key":"a"}]}`).want(202)
		d.post("/v1/leases", `{"on_conflict":"wait","claims":[{"key":"b"}]}`).want(429, "too_many_waiters")
	})
}
