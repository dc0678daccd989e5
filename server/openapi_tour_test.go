package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// The tours see to it that everything in openapi.json is seen; those about the kernel's features
// are in tour_test.go.

func tourLeases(d *door) {
	lease := d.post(
		"/v1/leases", `{"agent":"billing-7","purpose":"apply late fee","max_hold_ms":60000,"claims":[{"key":"account:1"}]}`,
	).want(200)
	id, fence := lease.str("lease.id"), lease.str("lease.fence")
	d.get("/v1/leases/"+id).want(200).is("lease.holder.agent", "billing-7")
	d.post("/v1/leases/"+id+"/renew", `{"progress":"1/2"}`).want(200)
	d.post("/v1/leases", `{"claims":[{"key":"account:1","mode":"shared"}]}`).want(409, "held").is(
		"holders.0.agent", "billing-7",
	)
	d.post("/v1/leases", `{"on_conflict":"skip","claims":[{"key":"account:1"}]}`).want(200).is("outcome", "skipped")
	ticket := d.post(
		"/v1/leases", `{"agent":"support-1","wait_ms":1000,"claims":[{"key":"account:1"}]}`,
	).want(202).str("ticket.id")
	d.get("/v1/tickets/" + ticket).want(202)
	d.post("/v1/fences/check", `{"key":"account:1","fence":"`+fence+`"}`).want(200).is("outcome", "valid")
	d.post("/v1/fences/check", `{"key":"account:1","fence":"99"}`).want(409, "fenced").is("conflict_kind", "fenced")
	d.post("/v1/revocations", `{"key":"account:1","fence":"99"}`).want(409, "fenced")
	ask := `{"key":"account:1","fence":"` + fence + `","reason":"late"}`
	d.post("/v1/yield-requests", ask).want(200).is("outcome", "asked")
	d.post("/v1/yield-requests", ask).want(200).is("outcome", "asked")
	d.get("/v1/leases/"+id).want(200).is("lease.yield.agent", "support-1")
	d.post("/v1/yield-requests", `{"key":"account:1","fence":"99"}`).want(409, "fenced")
	d.post("/v1/leases/"+id+"/release", `{"outcome":"done","note":"charged"}`).want(200).is("outcome", "released")
	d.post("/v1/leases/"+id+"/release", ``).want(410, "released")
	d.get("/v1/leases/"+id).want(410, "released")
	d.post("/v1/leases/"+id+"/renew", ``).want(410, "released")
	next := d.get("/v1/tickets/" + ticket + "?wait_ms=1000").want(200)
	next.is("notes.0.text", "charged").is("advice.action", "re_read")
	d.post("/v1/yield-requests", `{"key":"account:1","fence":"`+next.str("lease.fence")+`"}`).want(409, "no_waiter")
	d.post("/v1/revocations", `{"key":"account:1","fence":"`+next.str("lease.fence")+`","reason":"stuck"}`).want(200)
	d.get("/v1/tickets/"+ticket).want(410, "revoked")
	id = d.acquire("slow", "account:2")
	pass(interlock.DefaultTTL + 1)
	d.post("/v1/leases/"+id+"/renew", ``).want(409, "in_grace")
	d.post("/v1/sessions", `{"agent":"first"}`, "Idempotency-Key", "one").want(200)
	for _, call := range []struct{ path, body string }{
		{"/v1/leases", `{"claims":[{"key":"b"}]}`},
		{"/v1/sessions", `{"agent":"second"}`},
		{"/v1/leases/" + id + "/release", `{}`},
		{"/v1/revocations", `{"key":"a","fence":"1"}`},
		{"/v1/yield-requests", `{"key":"a","fence":"1"}`},
	} {
		d.post(call.path, call.body, "Idempotency-Key", "one").want(422, "request_id_reused")
	}
	d.delete("/v1/tickets/"+ticket, "Idempotency-Key", "one").want(422, "request_id_reused")
	d.delete("/v1/tickets/"+ticket).want(200).is("outcome", "left")
	pass(interlock.DefaultGrace)
}

func tourLooking(d *door) {
	one, two := d.session("agent-one"), d.session("agent-two")
	for session, key := range map[string]string{one: "org:acme/x", two: "org:acme/y"} {
		d.post("/v1/sessions/"+session+"/heartbeat", `{"progress":{"step":3}}`).want(200)
		d.post("/v1/leases", `{"session":"`+session+`","purpose":"audit","claims":[{"key":"`+key+`"}]}`).want(200)
	}
	d.post(
		"/v1/leases", `{"session":"`+one+`","on_conflict":"wait","purpose":"then y","claims":[{"key":"org:acme/y"}]}`,
	).want(202)
	for range engine.MaxShownHolders + 1 {
		d.post("/v1/leases", `{"agent":"reader","claims":[{"key":"doc:1","mode":"shared"}]}`).want(200)
	}
	d.post("/v1/leases", `{"on_conflict":"wait","claims":[{"key":"doc:1"}]}`).want(202).num("more_holders")
	d.post("/v1/leases", `{"on_conflict":"skip","claims":[{"key":"doc:1"}]}`).want(200).num("more_holders")
	d.post("/v1/leases", `{"claims":[{"key":"doc:1"}]}`).want(409).num("more_holders")
	pass(1e9)
	d.get("/v1/keys/org:acme%2Fy").want(200).is("state", "held").is("waiters.0.agent", "agent-one")
	d.get("/v1/keys/account:1").want(200).is("state", "free").num("hold_time_ms")
	d.get("/v1/keys/doc:1").want(200).num("more_holders")
	d.get("/v1/keys/account:1").want(200)
	page := d.get("/v1/keys?limit=1&state=held").want(200).is("keys.0.key", "doc:1")
	page.num("keys.0.more_holders")
	d.get("/v1/keys?limit=1&state=held&cursor="+page.str("cursor")).want(200).is("keys.0.key", "org:acme/x")
	d.get("/v1/keys?cursor="+page.str("cursor")).want(404, "not_found")
	d.get("/v1/waits").want(200).is("edges.0.waiter.agent", "agent-one")
	d.get("/v1/why?key=org:acme/y").want(200).is("chain.0.does", "holds")
	d.get("/v1/why?agent=agent-one").want(200).is("chain.1.agent", "agent-two")
	for range prose.MaxToldWait + 1 {
		d.post("/v1/leases", `{"agent":"agent-many","on_conflict":"wait","claims":[{"key":"org:acme/x"}]}`).want(202)
	}
	d.get("/v1/why?agent=agent-many").want(200).is("waits.1.chain.1.agent", "agent-one").num("more_waits")
	d.get("/v1/hot").want(200)
	d.get("/v1/journal/head").want(200)
	d.get("/v1/admin/backup").want(200)
	// The cycle closes: the younger of two equals is the victim.
	victim := d.post("/v1/leases", `{"session":"`+two+`","wait_ms":1000,"claims":[{"key":"org:acme/x"}]}`).want(
		409, "deadlock",
	)
	victim.says("detail", "waits for org:acme").says("cycle.0.key", "org:acme")
	// Another one, which an agent of higher priority closes: the victim learns of it
	// when it asks after its ticket.
	three, four := d.session("agent-three"), d.session("agent-four")
	for session, key := range map[string]string{three: "org:acme/3", four: "org:acme/4"} {
		d.post("/v1/leases", `{"session":"`+session+`","claims":[{"key":"`+key+`"}]}`).want(200)
	}
	ticket := d.post(
		"/v1/leases", `{"session":"`+three+`","on_conflict":"wait","claims":[{"key":"org:acme/4"}]}`,
	).want(202).str("ticket.id")
	d.post(
		"/v1/leases", `{"session":"`+four+`","priority":1,"on_conflict":"wait","claims":[{"key":"org:acme/3"}]}`,
	).want(202)
	d.get("/v1/tickets/"+ticket).want(409, "deadlock")
}

func tourSessions(d *door) {
	s := d.session("worker")
	l := d.post("/v1/leases", `{"session":"`+s+`","ttl_ms":2000,"grace_ms":0,"claims":[{"key":"job:1"}]}`).want(200)
	d.post("/v1/leases", `{"session":"`+s+`","max_hold_ms":10000,"claims":[{"key":"job:2"}]}`).want(200).num(
		"lease.max_hold_in_ms",
	)
	d.post("/v1/leases", `{"session":"`+s+`","claims":[{"key":"job:1"}]}`).want(200).is(
		"lease.fence", l.str("lease.fence"),
	)
	d.post("/v1/leases", `{"session":"`+d.session("other")+`","claims":[{"key":"job:3"}]}`).want(200)
	d.post("/v1/leases", `{"session":"`+s+`","on_conflict":"wait","claims":[{"key":"job:3"}]}`).want(202)
	d.get("/v1/sessions/"+s).want(200).is("leases.0.id", l.str("lease.id")).is("tickets.0.claims.0.key", "job:3")
	pass(7 * 1e9)
	beat := d.post("/v1/sessions/"+s+"/heartbeat", `{"progress":"half"}`).want(200)
	beat.is("losses.0.code", "expired").is("warnings.0.lease.state", "soft").says("warnings.0.advice.message", "job:2")
	d.delete("/v1/sessions/"+s).want(200).is("outcome", "closed")
	d.post("/v1/sessions/"+s+"/heartbeat", ``).want(410, "session_ended")
	d.get("/v1/sessions/"+s).want(410, "session_ended")
	d.get("/v1/sessions/s_00000000000000000000000000000001").want(404, "unknown_session")
	d.post("/v1/leases", `{"session":"`+s+`","claims":[{"key":"job:1"}]}`).want(410, "session_ended")
	gone := d.session("gone")
	pass(2 * interlock.DefaultTTL)
	d.delete("/v1/sessions/"+gone).want(410, "session_ended")
	unknown := "_00000000000000000000000000000001"
	d.get("/v1/leases/l"+unknown).want(404, "unknown_lease")
	d.post("/v1/leases/l"+unknown+"/renew", ``).want(404, "unknown_lease")
	d.post("/v1/leases/l"+unknown+"/release", ``).want(404, "unknown_lease")
	d.get("/v1/tickets/t"+unknown).want(404, "unknown_ticket")
	d.delete("/v1/tickets/t"+unknown).want(404, "unknown_ticket")
	d.post("/v1/sessions/s"+unknown+"/heartbeat", ``).want(404, "unknown_session")
	d.delete("/v1/sessions/s"+unknown).want(404, "unknown_session")
	d.post("/v1/leases", `{"session":"s`+unknown+`","claims":[{"key":"a"}]}`).want(404, "unknown_session")
}

func tourEvents(d *door) {
	d.post("/v1/leases", `{"claims":[{"key":"with:everything"}],"agent":"a","flow":"f","purpose":"p","priority":3,"max_hold_ms":5000}`,
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").want(200)
	if n := strings.Count(d.get("/v1/events").want(200).raw, "\n"); n < 20 {
		d.Fatalf("%d events", n)
	}
	d.get("/v1/events?follow=false", "Accept", "text/event-stream").want(200)
	// A followed stream is quiet for long, then the server goes away.
	r := d.request("GET", "/v1/events?follow=true", "")
	stream, watch := d.start(r), d.start(d.request("GET", "/v1/watch?prefix=doc:", ""))
	lines := d.start(d.request("GET", "/v1/watch?prefix=doc:&from=1", "", "Accept", "application/x-ndjson"))
	pass(time.Hour)
	d.server.Drain()
	got := <-stream
	if !strings.Contains(got.raw, `"keep_alive"`) || !strings.HasSuffix(got.raw, "\n") ||
		!strings.Contains(got.raw, `"code":"shutting_down"`) {
		d.Fatalf("a drained stream ends with %q", got.raw[max(0, len(got.raw)-200):])
	}
	if got := <-watch; !strings.HasSuffix(got.raw, "\n\n") || !strings.Contains(got.raw, `event: end`) {
		d.Fatalf("a drained watch ends with %q", got.raw)
	}
	if got := <-lines; !strings.HasSuffix(got.raw, "}\n") || !strings.Contains(got.raw, `"event":"end"`) {
		d.Fatalf("a drained watch of lines ends with %q", got.raw)
	}
	d.get("/v1/events").want(503, "shutting_down")
	d.get("/readyz").want(503, "shutting_down")
	d.get("/healthz").want(200)
}

func tourBadRequests(d *door) {
	for _, c := range samples() {
		sep := "?"
		if strings.Contains(c.path, "?") {
			sep = "&"
		}
		d.sample(c, c.path+sep+"nonsense=1", c.body).want(400, "invalid_request").says("detail", "nonsense")
		d.sample(c, c.path, c.body, "Host", "evil.example").want(403, "foreign_host")
		if c.method == "GET" || c.method == "DELETE" {
			continue
		}
		d.sample(c, c.path, strings.Repeat(" ", maxCommitBody+1)).want(413, "body_too_large")
		r := d.request(c.method, c.path, c.body, "Content-Type", "text/plain")
		if c.kind == anyBytes {
			r.Header.Del("Content-Type")
		}
		d.send(r).want(415, "invalid_request")
		if c.kind == "" {
			d.sample(c, c.path, `{"surprise":1}`).want(400, "invalid_request").says("detail", "surprise")
		}
	}
}

// sample sends a sample with another path or body.
func (d *door) sample(c sample, path, body string, headers ...string) *reply {
	d.Helper()
	if c.kind != "" {
		headers = append(headers, "Content-Type", c.kind)
	}
	return d.send(d.request(c.method, path, body, headers...))
}

// tourFaults replaces the shard by one that fails in each way.
func tourFaults(d *door) {
	healthy := d.server.shard
	defer func() { d.server.shard = healthy }()
	// Some operations read the state that they change.
	d.put("/v1/queues/fees", ``).want(200)
	d.put("/v1/writers/account", `{"queue":"fees","pattern":"account:{id}"}`).want(200)
	every := func(err error, eff *engine.Effect, status int, code interlock.Code, only ...string) {
		d.server.shard = faulty{healthy, err, eff}
		for _, c := range samples() {
			if len(only) > 0 && !slices.Contains(only, c.method+" "+c.path) {
				continue
			}
			switch c.path {
			case "/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/llms.txt", "/v1/fences/keys":
				continue
			}
			d.sample(c, c.path, c.body).want(status, string(code))
		}
	}
	every(&interlock.Error{Code: interlock.CodeNotOwner, Message: "gone"}, nil, 503, interlock.CodeNotOwner)
	every(errors.New("disk on fire"), nil, 500, interlock.CodeInternal)
	every(
		&interlock.Error{Code: interlock.CodeQuota, Message: "too many requests a second"}, nil, 429, interlock.CodeQuota,
	)
	d.server.shard = faulty{healthy, errors.New("disk on fire"), nil}
	d.get("/v1/fences/keys").want(500, "internal")
	tourRefusals(d, healthy)
	tourEffects(d, healthy)

	d.server.shard = faulty{healthy, &interlock.Error{Code: interlock.CodeNotOwner, Message: "gone"}, nil}
	d.get("/healthz").want(503, "not_owner")
	d.get("/readyz").want(503, "not_owner")
	d.get("/v1/fences/keys").want(503, "not_owner")
	d.server.shard = healthy
	d.get("/healthz").want(200)
	d.get("/readyz").want(200)
	d.get("/metrics").want(200)
	d.get("/openapi.json").want(200)
	d.get("/llms.txt").want(200)
	d.get("/").want(200).is("links.openapi", "/openapi.json")
	d.server.shard = trimmedShard{healthy}
	d.get("/v1/events?from=2").want(410, "history_trimmed")
	d.get("/v1/watch?from=2").want(410, "history_trimmed")
	d.server.shard = largeShard{healthy}
	d.get("/v1/at?path=keys&index=2").want(422, "past_too_large")
	d.get("/v1/differences?from=2").want(422, "past_too_large").says("detail", "entry 2", "512 MiB")
	d.server.shard = healthy
	for range d.server.streams.max {
		if leave, ok := d.server.streams.enter(interlock.DefaultNamespace); !ok {
			d.Fatal("no place for a stream")
		} else {
			defer leave()
		}
	}
	d.get("/v1/events").want(200)
	d.get("/v1/events?follow=true").want(429, "too_many_streams")
	d.get("/v1/watch").want(429, "too_many_streams")
}

func tourCredentials(d *door) {
	bearer := "Bearer " + d.reopenWithCredentials()
	session := d.post("/v1/sessions", `{}`, "Authorization", bearer).want(200).str("session.id")
	for _, code := range []int{200, 202} {
		d.post(
			"/v1/leases",
			fmt.Sprintf(`{"session":%q,"on_conflict":"wait","flow":"f%d","claims":[{"key":"mine"}]}`, session, code),
			"Authorization", bearer,
		).want(code)
	}
	for _, path := range []string{"leases", "tickets", "sessions"} {
		d.get("/v1/"+path, "Authorization", bearer).want(200).is(path+".0.principal", "billing-swarm")
	}
	if events := d.get("/v1/events", "Authorization", bearer).want(200).raw; !strings.Contains(
		events, `"actor":"billing-swarm"`,
	) {
		d.Fatalf("no actor in %s", events)
	}
	for _, c := range samples() {
		switch c.path {
		case "/", "/healthz", "/readyz", "/openapi.json", "/llms.txt", "/v1/fences/keys":
			continue
		}
		d.sample(c, c.path, c.body).want(401, "unauthenticated")
	}
}
