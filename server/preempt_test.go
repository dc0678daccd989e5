package server

import (
	"strings"
	"testing"
	"time"
)

// A holder that is asked to yield learns the asker and the reason, at the next heartbeat or
// renewal.
func TestAskedToYield(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		s := d.session("billing-7")
		lease := d.post("/v1/leases", `{"session":"`+s+`","claims":[{"key":"account:1"}]}`).want(200).str("lease.id")
		bare := d.acquire("solo", "account:2")
		asker := d.session("support-2")
		for _, key := range []string{"account:1", "account:2"} {
			d.post(
				"/v1/leases",
				`{"session":"`+asker+`","flow":"`+key+
					`","purpose":"fix the outage","priority":3,"on_conflict":"preempt","claims":[{"key":"`+key+`"}]}`,
			).want(202)
		}
		pass(4 * time.Second)
		why := d.get("/v1/why?key=account:1").want(200).says(
			"text", "(live, asked by support-2 to yield)", `support-2 ("fix the outage") asked billing-7 to yield 4 s ago. `,
		)
		if strings.Contains(why.raw, asker) {
			t.Error(why.raw)
		}
		d.get("/v1/keys/account:1").want(200).is("holders.0.yield.agent", "support-2").is(
			"holders.0.yield.purpose", "fix the outage",
		)
		beat := d.post("/v1/sessions/"+s+"/heartbeat", "").want(200)
		beat.is("warnings.0.lease.id", lease).is("warnings.0.lease.yield.agent", "support-2").is(
			"warnings.0.lease.yield.purpose", "fix the outage",
		)
		beat.is("warnings.0.lease.yield.flow", "account:1").is("warnings.0.advice.action", "stop")
		beat.says("warnings.0.advice.message", `support-2 ("fix the outage") asks for account:1`, "release the lease with a note")
		if beat.num("warnings.0.lease.yield.priority") != 3 || beat.num("warnings.0.lease.yield.since_ms") != 4000 ||
			beat.at("warnings.0.lease.yield.revoked") != false {
			t.Error(beat.raw)
		}
		if strings.Contains(beat.raw, asker) {
			t.Error("the id of the asker's session is shown")
		}
		d.post("/v1/leases/"+bare+"/renew", "").want(200).is("lease.yield.agent", "support-2").is("advice.action", "stop")
		if n := d.figure("interlock_yield_requests_total"); n != "2" {
			t.Errorf("%s were counted", n)
		}
		asked := lines(t, d.get("/v1/events").raw)
		for _, ev := range asked {
			if ev["event"] == "yield_requested" &&
				(ev["asker"] != "support-2" || ev["actor"] != nil || ev["purpose"] != "fix the outage" || ev["priority"] != 3.0 ||
					ev["by"] == nil || ev["target_session"] != "2") {
				t.Error(ev)
			}
		}
		start := time.Now()
		waiting := d.start(d.request(
			"POST", "/v1/leases", `{"wait_ms":20000,"on_conflict":"preempt","claims":[{"key":"account:2"}]}`,
		))
		pass(time.Second)
		d.post("/v1/leases/"+lease+"/release", "").want(200)
		if (<-waiting).want(202); time.Since(start) != 20*time.Second {
			t.Error("preempt does not wait within the call")
		}
	})
}

// Where the pattern demands it, the holder has its grace and no more.
func TestPreempted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.pattern("account", `{"pattern":"account:{id}","preempt":"revoke"}`)
		s := d.session("billing-7")
		lease := d.post("/v1/leases", `{"session":"`+s+`","claims":[{"key":"account:1"}]}`).want(200).str("lease.id")
		d.post(
			"/v1/leases",
			`{"agent":"urgent","purpose":"now","wait_ms":0,"on_conflict":"preempt","priority":-1,"claims":[{"key":"account:1"}]}`,
		).want(202).
			says("advice.message", "billing-7 (live, asked by urgent to yield)")
		next := d.start(d.request(
			"POST", "/v1/leases",
			`{"agent":"support-2","wait_ms":20000,"on_conflict":"preempt","claims":[{"key":"account:1"}]}`,
		))
		pass(time.Second)
		why := d.get("/v1/why?key=account:1").want(200).says(
			"text", "billing-7 (in grace, gone in 4 s at the latest, preempted by support-2)",
			"support-2 asked billing-7 to yield 1 s ago, and it loses the lease in 4 s at the latest",
		)
		why.says("advice.message", "billing-7 was preempted for support-2; the key is passed on in 4 s at the latest")
		d.get("/v1/keys/account:1").want(200).is("holders.0.ended_by", "preempted")
		d.get("/v1/why?agent=billing-7").want(200).is(
			"advice.message", "billing-7 was preempted for support-2, and loses its leases in 4 s at the latest",
		)
		beat := d.post("/v1/sessions/"+s+"/heartbeat", "").want(200).is("losses.0.lease.state", "grace").is(
			"losses.0.lease.ended_by", "preempted",
		)
		beat.says("losses.0.detail", "account:1 was preempted", `"support-2"`).says("losses.0.advice.message", "start nothing new")
		if beat.at("losses.0.lease.yield.revoked") != true {
			t.Error(beat.raw)
		}
		(<-next).want(200)
		got := d.get("/v1/leases/"+lease).want(410, "preempted").is("ended_by", "preempted").is("advice.action", "re_read")
		got.says("detail", "support-2")
		d.pattern("account", `{"pattern":"account:{id}","preempt":"never"}`)
		d.post("/v1/leases", `{"wait_ms":0,"on_conflict":"preempt","claims":[{"key":"account:1"}]}`).want(202).says(
			"warnings.0", "the pattern of key account:1 does not allow preemption",
		)
	})
}
