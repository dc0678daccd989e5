package server

import (
	"strings"

	"github.com/interlockdev/interlock"
)

// tourRuns starts runs and changes their cap, in a namespace of its own.
func tourRuns(d *door) {
	ns := []string{"Interlock-Namespace", "admission"}
	put := func(body string) { d.send(d.request("PUT", "/v1/patterns/runs", body, ns...)).want(200) }
	d.get("/v1/patterns/runs/revisions", ns...).want(404, "unknown_pattern")
	put(`{"pattern":"org:{org}/runs","capacity":2}`)
	put(`{"pattern":"org:{org}/runs","capacity":5}`)
	d.post("/v1/patterns/runs/revert", ``, ns...).want(200).is("outcome", "reverted")
	d.post("/v1/patterns/runs/revert", `{"revision":9}`, ns...).want(404, "unknown_revision")
	d.send(d.request("DELETE", "/v1/patterns/runs", "", ns...)).want(200)
	d.post("/v1/patterns/runs/revert", `{"revision":1}`, ns...).want(200)
	seen := d.get("/v1/patterns/runs/revisions", ns...).want(200).is("name", "runs")
	if seen.num("revisions.0.revision") != 5 || seen.num("revisions.0.reverted") != 1 ||
		seen.at("revisions.1.dropped") != true || seen.num("revisions.3.policy.capacity") != 5 {
		d.Error(seen.raw)
	}

	tourShown(d, "Revisions", func(j *jsonOut) {
		j.open("")
		j.text("name", "runs")
		j.openArray("revisions")
		writeRevision(j, "", &interlock.PatternRevision{Revision: 1, Actor: "ops", Dropped: true})
		j.closeArray()
		j.at(interlock.At{})
		j.serverTime()
		j.close()
	})

	first := d.post("/v1/runs", `{"org":"acme","workflow":"triage","agent":"triage-1"}`, ns...).want(200).is(
		"outcome", "granted",
	)
	id := first.is("run.org", "acme").is("run.workflow", "triage").str("run.id")
	if id != first.str("run.lease.id") {
		d.Error(first.raw)
	}
	d.post("/v1/runs", `{"org":"acme"}`, ns...).want(200)
	full := d.post("/v1/runs", `{"org":"acme","wait_ms":0}`, ns...).want(429, "too_many_runs").is(
		"key", "org:acme/runs",
	).is("conflict_kind", "capacity")
	if full.header.Get("Retry-After") == "" || full.at("retryable") != true || full.num("capacity.used") != 2 {
		d.Error(full.raw)
	}
	full.says("detail", "org:acme/runs has 2 of 2 permits taken by triage-1").says("advice.message", "under the same request id")
	page := d.get("/v1/runs?org=acme&limit=1", ns...).want(200).is("runs.0.workflow", "triage").is(
		"runs.0.holder.agent", "triage-1",
	)
	d.get("/v1/runs?org=acme&limit=1&cursor="+page.str("cursor"), ns...).want(200).is("runs.0.org", "acme")
	d.get("/v1/runs?org=globex&cursor="+page.str("cursor"), ns...).want(404, "not_found")
	if raw := page.raw; strings.Contains(raw, id) {
		d.Errorf("a listing shows the id of a lease: %s", raw)
	}
	d.post("/v1/runs/"+id+"/end", `{"outcome":"done","note":"12 tickets"}`, ns...).want(200).is("outcome", "ended")
	d.post("/v1/runs/"+id+"/end", ``, ns...).want(410, "released")
	d.post("/v1/runs", `{"org":"acme"}`, ns...).want(200).is("notes.0.text", "12 tickets")
	events := d.get("/v1/events", ns...).want(200).raw
	for _, want := range []string{
		`"run":{"org":"acme","workflow":"triage"}`, `"pattern":"runs","revision":5,"reverted":1`,
	} {
		if !strings.Contains(events, want) {
			d.Errorf("the events lack %s: %s", want, events)
		}
	}
}

// tourRunAnswers sees each answer about runs with all that it may have.
func tourRunAnswers(send func(method, path, effect string, status int) *reply) {
	send("POST", "/v1/runs", "granted", 200).is("run.lease.group", "batch").says("warnings.0", "spelled").is(
		"advice.action", "stop",
	)
	send("POST", "/v1/runs", "refused", 429)
	send("POST", "/v1/runs", "queued", 429).is("code", string(interlock.CodeTooManyRuns))
}
