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
		lease := d.post(
			"/v1/leases", `{"session":"`+s+`","purpose":"late fee","claims":[{"key":"account:1"}]}`,
		).want(200).str("lease.id")
		path := "/v1/leases/" + lease
		d.post(path+"/resume", "").want(409, "not_parked").says("advice.message", "continue under it")

		parked := d.post(path+"/park", `{"reason":"may I charge 900?","for_ms":7200000}`).want(200).is(
			"outcome", "parked",
		).is("lease.state", "parked")
		parked.is("lease.parking.reason", "may I charge 900?").is("lease.parking.keys", "kept").is(
			"advice.action", "ask_human",
		)
		parked.says(
			"advice.message", "account:1 stays reserved for the lease: ask the human to decide, then resume the lease by its "+
				"id within 2 h",
		)
		if parked.num("lease.parking.left_ms") != 7_200_000 {
			t.Error(parked.raw)
		}
		d.delete("/v1/sessions/" + s).want(200)
		pass(time.Hour)

		// Others see its holder, and that its duration is unknown.
		held := d.post("/v1/leases", `{"claims":[{"key":"account:1"}]}`).want(409, "held").is(
			"holders.0.liveness", "parked",
		).is("holders.0.parking.reason", "may I charge 900?").is("advice.action", "work_elsewhere")
		held.says(
			"detail",
			`account:1 is held by billing-7 (parked until a human decides on "may I charge 900?", for 60 min at most`,
		)
		d.get("/v1/why?key=account:1").want(200).says("text", `parked until a human decides on "may I charge 900?"`).is(
			"advice.action", "ask_human",
		)
		d.get("/v1/why?agent=billing-7").want(200).says("text", "1 of them is parked until a human decides").is(
			"advice.action", "ask_human",
		)
		d.get("/v1/keys/account:1").want(200).is("holders.0.parking.reason", "may I charge 900?").is(
			"holders.0.parking.keys", "kept",
		)
		d.post(path+"/renew", "").want(409, "parked").is("advice.action", "ask_human")
		d.post(path+"/park", "").want(409, "parked")
		d.post(path+"/convert", `{"claims":[{"key":"account:2"}]}`).want(409, "parked")
		d.get(path).want(200).is("lease.state", "parked")

		d.post("/v1/approvals/1", `{"verdict":"approved","by":"ann"}`).want(200)
		next := d.session("billing-8")
		got := d.post(path+"/resume", `{"session":"`+next+`","flow":"main"}`, "Idempotency-Key", "go on").want(200).is(
			"lease.id", lease,
		).is("lease.fence", "2").is("lease.holder.agent", "billing-8")
		if got.at("changed") != false || got.at("lease.moved") != nil {
			t.Error(got.raw)
		}
		d.post(path+"/resume", `{"session":"`+next+`","flow":"main"}`, "Idempotency-Key", "go on").want(200).is(
			"lease.fence", "2",
		)
		if story := kinds(lines(t, d.get("/v1/events").raw)); !strings.Contains(story, "parked") ||
			!strings.Contains(story, "resumed") {
			t.Error(story)
		}
	})
}

// With its keys freed, others may work meanwhile, and resuming reports what moved.
func TestResumeAfterOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		lease := d.post(
			"/v1/leases", `{"agent":"billing-7","claims":[{"key":"account:1"},{"key":"account:2"}]}`,
		).want(200).str("lease.id")
		path := "/v1/leases/" + lease
		d.post(path+"/park", `{"keys":"free"}`).want(200).is("lease.parking.keys", "freed").says(
			"advice.message", "free for others in the meantime",
		)
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
		d.post("/v1/leases/"+lease+"/park", `{"reason":"`+strings.Repeat("x", interlock.MaxReasonBytes+1)+`"}`).want(
			400, "too_long",
		)
		d.post("/v1/leases/"+lease+"/park", "").want(200).num("lease.parking.left_ms")
		d.post("/v1/leases/"+d.acquire("b", "never:1")+"/park", "").want(400, "invalid_request").says("detail", "never")
		pass(61 * time.Second)
		d.get("/v1/leases/"+lease).want(410, "expired").is("ended_by", "park_limit").says(
			"detail", "its maximum parking time passed",
		)
		d.acquire("next", "account:1")
	})
}

// A lease that is parked with a reason stands among the approvals: another principal than its
// holder's answers, by the fence, and the waiter to resume it has the lease and the answer.
func TestApproveParkedLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		desk, deskLine := newSecret(d, "desk", "default")
		cfo, cfoLine := newSecret(d, "cfo", "default")
		agent, agentLine := newSecret(d, "agent-7", "default")
		c := credentialsFile(d, deskLine+" agent approver", cfoLine+" approver", agentLine+" agent")
		d.reopen(func(cfg *Config) { cfg.Credentials = c })
		as := func(secret string) []string { return []string{"Authorization", "Bearer " + secret} }

		lease := d.post(
			"/v1/leases", `{"agent":"billing-7","purpose":"ticket 77","claims":[{"key":"account:1"}]}`, as(desk)...,
		).want(200).str("lease.id")
		path := "/v1/leases/" + lease
		d.post(path+"/park", `{"reason":"refund 900?","for_ms":7200000}`, as(desk)...).want(200)
		pass(time.Second)
		list := d.get("/v1/approvals", as(cfo)...).want(200).is("leases.0.kind", "lease").is("leases.0.fence", "1").is(
			"leases.0.question", "refund 900?",
		)
		list.is("leases.0.agent", "billing-7").is("leases.0.principal", "desk").is("leases.0.claims.0.key", "account:1").is(
			"leases.0.keys", "kept",
		)
		if list.num("leases.0.asked_ms") != 1000 || strings.Contains(list.raw, lease) {
			t.Error(list.raw)
		}
		d.post(path+"/resume", `{}`, as(desk)...).want(409, "parked").is("advice.action", "ask_human")
		d.post(path+"/resume", `{"on_conflict":"wait"}`, as(desk)...).want(409, "parked")
		d.post(path+"/resume", `{"wait_ms":1000}`, as(desk)...).want(409, "parked")
		waiting := d.start(d.request(
			"POST", path+"/resume", `{"wait_ms":50000}`, append(as(desk), "Idempotency-Key", "resume")...,
		))
		pass(time.Second)

		const yes = `{"verdict":"approved","by":"the CFO","reason":"within policy"}`
		d.post("/v1/approvals/1", yes, as(desk)...).want(403, "forbidden").says("detail", `credential "desk" holds the lease`)
		d.post("/v1/approvals/1", yes, as(agent)...).want(403, "forbidden")
		d.post("/v1/approvals/2", yes, as(cfo)...).want(409, "not_asking")
		answered := d.post("/v1/approvals/1", yes, append(as(cfo), "Idempotency-Key", "yes")...).want(200).is(
			"outcome", "approved",
		).is("lease.decision.principal", "cfo")
		if strings.Contains(answered.raw, lease) || answered.at("warnings") != nil {
			t.Error(answered.raw)
		}
		granted := (<-waiting).want(200).is("outcome", "granted").is("lease.fence", "2")
		granted.is("lease.decision.verdict", "approved").is("lease.decision.by", "the CFO").is(
			"lease.decision.principal", "cfo",
		).is("lease.decision.reason", "within policy")
		d.post(path+"/resume", `{"wait_ms":50000}`, append(as(desk), "Idempotency-Key", "resume")...).want(200).is(
			"lease.fence", "2",
		)
		if raw := d.get("/v1/approvals", as(cfo)...).want(200).raw; strings.Contains(raw, "leases") {
			t.Error(raw)
		}
		d.post("/v1/approvals/1", yes, append(as(cfo), "Idempotency-Key", "yes")...).want(200).is("outcome", "approved")
		d.post("/v1/approvals/1", yes, as(cfo)...).want(409, "not_asking")
		if story := kinds(lines(t, d.get("/v1/events", as(cfo)...).raw)); !strings.Contains(story, "parked decided resumed") {
			t.Error(story)
		}
	})
}

// An answer to a lease is kept with it while its holder is away. A denial wakes the waiter, and the
// lease stays parked.
func TestAnswerIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		path := "/v1/leases/" + d.acquire("billing-7", "account:1")
		d.post(path+"/park", `{"reason":"refund 900?","for_ms":7200000}`).want(200)
		d.post("/v1/approvals/1", `{"verdict":"approved"}`).want(400, "invalid_request").says(
			"detail", "the name of the person who answers is missing",
		)
		d.post("/v1/approvals/1", `{"verdict":"approved","by":"ann"}`).want(200).says("warnings.0", "courtesy")
		pass(time.Hour)
		d.get(path).want(200).is("lease.state", "parked").is("lease.decision.verdict", "approved").says(
			"advice.message", "account:1 was approved by ann: resume the lease",
		)
		d.post(path+"/resume", `{}`).want(200).is("lease.decision.by", "ann")

		d.post(path+"/park", `{"reason":"and 90?"}`).want(200)
		waiting := d.start(d.request("POST", path+"/resume", `{"wait_ms":50000}`))
		pass(time.Second)
		d.post("/v1/approvals/2", `{"verdict":"denied","by":"ann","reason":"no"}`).want(200).is(
			"lease.decision.verdict", "denied",
		)
		(<-waiting).want(409, "denied").says("detail", `denied by "ann"`).is("advice.action", "stop")
		d.post(path+"/resume", `{"wait_ms":50000}`).want(409, "denied")
		d.get(path).want(200).is("lease.state", "parked").says("advice.message", "release the lease")
		d.post(path+"/resume", `{"unapproved":true}`).want(200).is("lease.decision.verdict", "denied")

		d.post(path+"/park", `{"reason":"and 9?"}`).want(200)
		resumed := d.post(path+"/resume", `{"unapproved":true}`).want(200)
		if resumed.at("lease.decision") != nil {
			t.Error(resumed.raw)
		}
		d.post("/v1/approvals/3", `{"verdict":"approved","by":"ann"}`).want(409, "not_asking")
		for range 2 {
			d.post("/v1/leases/"+d.acquire("a", "doc:"+d.session("x"))+"/park", `{"reason":"so?"}`).want(200)
		}
		d.get("/v1/approvals?limit=1").want(200).is("leases.0.question", "so?")
	})
}

// A lease with freed keys is resumed by the answer when others have released them. A waiter for
// the answer continues when the server forgets its listeners, and leaves when its caller hangs
// up.
func TestAnsweredInLine(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		path := "/v1/leases/" + d.acquire("billing-7", "account:1")
		d.post(path+"/park", `{"reason":"refund 900?","keys":"free"}`).want(200)
		other := d.acquire("other", "account:1")
		waiting := d.start(d.request("POST", path+"/resume", `{"wait_ms":50000}`))
		pass(time.Second)
		d.post("/v1/approvals/1", `{"verdict":"approved","by":"ann"}`).want(200)
		pass(time.Second)
		d.post("/v1/leases/"+other+"/release", "").want(200)
		(<-waiting).want(200).is("lease.moved.0", "account:1").is("lease.decision.by", "ann")
		d.post(path+"/release", "").want(200)

		ended := "/v1/leases/" + d.acquire("billing-7", "account:2")
		d.post(ended+"/park", `{"reason":"refund 900?"}`).want(200)
		waiting = d.start(d.request("POST", ended+"/resume", `{"wait_ms":50000}`))
		pass(time.Second)
		d.post(ended+"/release", "").want(200)
		(<-waiting).want(410, "released")
	})
}
