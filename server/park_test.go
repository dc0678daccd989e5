package server

import (
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

// A lease is put aside while a human decides, and outlives its session.
func TestParkAndResume(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		s := d.session("billing-7")
		lease := d.post("/v1/leases", `{"session":"`+s+`","purpose":"late fee","claims":[{"key":"account:1"}]}`).want(200).str("lease.id")
		path := "/v1/leases/" + lease
		d.post(path+"/resume", "").want(409, "not_parked").says("advice.message", "nothing to resume")

		parked := d.post(path+"/park", `{"reason":"may I charge 900?","for_ms":7200000}`).want(200).is("outcome", "parked").is("lease.state", "parked")
		parked.is("lease.parking.reason", "may I charge 900?").is("lease.parking.keys", "kept").is("advice.action", "ask_human")
		parked.says("advice.message", "account:1 is kept for it: have the human decide, and resume the lease by its id within 2 h")
		if parked.num("lease.parking.left_ms") != 7_200_000 {
			t.Error(parked.raw)
		}
		d.delete("/v1/sessions/" + s).want(200)
		pass(time.Hour)

		// Others see who keeps it, and that nobody knows for how long.
		held := d.post("/v1/leases", `{"claims":[{"key":"account:1"}]}`).want(409, "held").is("holders.0.liveness", "parked").is("holders.0.parking.reason", "may I charge 900?").is("advice.action", "work_elsewhere")
		held.says("advice.message", `account:1 is held by billing-7 (parked while a human decides on "may I charge 900?", for 60 min at the longest`)
		d.get("/v1/why?key=account:1").want(200).says("text", `parked while a human decides on "may I charge 900?"`).is("advice.action", "ask_human")
		d.get("/v1/why?agent=billing-7").want(200).says("text", "1 of them is parked while a human decides").is("advice.action", "ask_human")
		d.get("/v1/keys/account:1").want(200).is("holders.0.parking.reason", "may I charge 900?").is("holders.0.parking.keys", "kept")
		d.post(path+"/renew", "").want(409, "parked").is("advice.action", "ask_human")
		d.post(path+"/park", "").want(409, "parked")
		d.post(path+"/convert", `{"claims":[{"key":"account:2"}]}`).want(409, "parked")
		d.get(path).want(200).is("lease.state", "parked")

		next := d.session("billing-8")
		got := d.post(path+"/resume", `{"session":"`+next+`","flow":"main"}`, "Idempotency-Key", "go on").want(200).is("lease.id", lease).is("lease.fence", "2").is("lease.holder.agent", "billing-8")
		if got.at("changed") != false || got.at("lease.moved") != nil {
			t.Error(got.raw)
		}
		d.post(path+"/resume", `{"session":"`+next+`","flow":"main"}`, "Idempotency-Key", "go on").want(200).is("lease.fence", "2")
		if story := kinds(lines(t, d.get("/v1/events").raw)); !strings.Contains(story, "parked") || !strings.Contains(story, "resumed") {
			t.Error(story)
		}
	})
}

// With its keys freed, others may work meanwhile, and resuming says what moved.
func TestResumeAfterOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		lease := d.post("/v1/leases", `{"agent":"billing-7","claims":[{"key":"account:1"},{"key":"account:2"}]}`).want(200).str("lease.id")
		path := "/v1/leases/" + lease
		d.post(path+"/park", `{"keys":"free"}`).want(200).is("lease.parking.keys", "freed").says("advice.message", "free for others meanwhile")
		other := d.acquire("support-2", "account:2")
		d.post("/v1/leases", `{"agent":"late","on_conflict":"wait","claims":[{"key":"account:2"}]}`).want(202)
		d.post(path+"/resume", `{}`).want(409, "held").is("holders.0.agent", "support-2")
		d.post(path+"/resume", `{"on_conflict":"wait"}`).want(202).is("ticket.id", "t_"+lease[2:])
		waiting := d.start(d.request("GET", "/v1/tickets/t_"+lease[2:]+"?wait_ms=20000", ""))
		pass(time.Second)
		d.post("/v1/leases/"+other+"/release", "").want(200)
		got := (<-waiting).want(200).is("lease.id", lease).is("lease.moved.0", "account:2").is("advice.action", "re_read")
		got.says("advice.message", "others may have written account:2 while the lease was parked")
		if got.at("changed") != true {
			t.Error(got.raw)
		}
	})
}

func TestParkingEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.pattern("account", `{"pattern":"account:{id}","park":"keep","max_park_ms":60000}`)
		d.pattern("never", `{"pattern":"never:{id}","park":"never"}`)
		lease := d.acquire("a", "account:1")
		d.post("/v1/leases/"+lease+"/park", `{"keys":"free"}`).want(400, "invalid_request")
		d.post("/v1/leases/"+lease+"/park", `{"for_ms":2592000001}`).want(400, "invalid_ttl")
		d.post("/v1/leases/"+lease+"/park", `{"reason":"`+strings.Repeat("x", interlock.MaxReasonBytes+1)+`"}`).want(400, "too_long")
		d.post("/v1/leases/"+lease+"/park", "").want(200).num("lease.parking.left_ms")
		d.post("/v1/leases/"+d.acquire("b", "never:1")+"/park", "").want(400, "invalid_request").says("detail", "never")
		pass(61 * time.Second)
		d.get("/v1/leases/"+lease).want(410, "expired").is("ended_by", "park_limit").says("advice.message", "because it was parked for as long as it may be")
		d.acquire("next", "account:1")
	})
}
