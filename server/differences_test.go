package server

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// tourDifferences makes a change of each kind between two moments, and compares the states after them.
func tourDifferences(d *door) {
	now := func() string { return d.get("/v1/status").want(200).str("at.index") }
	wait := func(agent string) (ticket string) {
		return d.post("/v1/leases", fmt.Sprintf(
			`{"agent":%q,"claims":[{"key":"diff:line"}],"wait_ms":1}`, agent,
		)).want(202).str("ticket.id")
	}
	d.put("/v1/queues/diff", ``).want(200)
	d.pattern("diff", `{"pattern":"diff:pool","capacity":2}`)
	dead := d.post("/v1/tasks", `{"queue":"diff","claims":[{"key":"diff:job"}],"purpose":"sum"}`).want(202).str("task.id")
	d.commitDoc("diff:rewritten", `{"is":"one"}`)
	d.commitDoc("diff:deleted", `{"is":"one"}`)
	d.commitDoc("diff:same", `{"is":"one"}`)
	passed, ended := d.acquire("billing-7", "diff:passed"), d.acquire("billing-7", "diff:ended")
	d.acquire("billing-7", "diff:line")
	first := wait("support-1")
	wait("support-2")
	before := now()
	d.get("/v1/differences?from="+before).want(200).has("left_out", 0).is("to.index", before)

	pass(5 * time.Second)
	d.post("/v1/leases/"+passed+"/release", ``).want(200)
	d.post("/v1/leases/"+ended+"/release", ``).want(200)
	d.acquire("refactor-3", "diff:passed")
	d.acquire("refactor-3", "diff:new")
	d.post("/v1/leases", `{"agent":"refactor-3","claims":[{"key":"diff:pool","permits":2}]}`).want(200)
	d.delete("/v1/tickets/" + first).want(200)
	wait("support-3")
	undeclared := now()
	d.post("/v1/sessions", `{"agent":"auditor","ttl_ms":60000}`).want(200)
	d.post("/v1/waits", `{"agent":"support-4","on":{"agent":"auditor"},"wait_ms":0}`).want(202)
	d.put("/v1/state/diff:rewritten", `{"is":"two"}`, "If-Match", "*").want(200)
	d.delete("/v1/state/diff:deleted", "If-Match", "*").want(200)
	d.commitDoc("diff:written", `{"is":"one"}`)
	d.post("/v1/tasks/"+dead+"/cancel", ``).want(200)
	d.post("/v1/tasks", `{"queue":"diff","kind":"mail","claims":[{"key":"diff:job"}]}`).want(202)
	after := now()

	got := d.get("/v1/differences?from=" + before + "&to=" + after + "&prefix=diff:").want(200)
	got.is("from.index", before).is("to.index", after).is("at.index", after)
	got.changes("leases", "key", `diff:ended: gone, diff:new: new, diff:passed: changed, diff:pool: new`)
	got.is("leases.2.before.agent", "billing-7").is("leases.2.after.agent", "refactor-3").has("leases.3.after.count", 2)
	got.changes("waiters", "agent", `support-1: gone, support-2: changed, support-3: new`)
	got.has("waiters.1.before.position", 2).has("waiters.1.after.position", 1).is("waiters.1.keys.0", "diff:line")
	got.changes("documents", "key", `diff:deleted: gone, diff:rewritten: changed, diff:written: new`)
	got.changes("tasks", "kind", `: changed, mail: new`)
	got.is("tasks.0.task", dead).is("tasks.0.before.state", "waiting").is("tasks.0.after.state", "cancelled")
	got.has("sums.leases.new", 2).has("sums.leases.gone", 1).has("sums.leases.changed", 1).has("left_out", 0)

	got = d.get("/v1/differences?from=" + undeclared + "&to=" + after).want(200)
	got.changes("waiters", "agent", `support-4: new`)
	got.is("waiters.0.on.agent", "auditor").has("waiters.0.after.position", 0)

	got = d.get("/v1/differences?from=4s&prefix=diff:&limit=1").want(200).has("left_out", 8).has("sums.tasks.changed", 1)
	got.is("from.index", before).changes("leases", "key", "diff:ended: gone")
	got = d.get("/v1/differences?from="+before+"&prefix=diff:w").want(200).has("sums.leases.new", 0)
	got.changes("documents", "key", "diff:written: new")

	d.get("/v1/differences").want(400, "invalid_request").says("detail", "1041", "12h")
	d.get("/v1/differences?from="+after+"&to="+before).want(400, "invalid_request").says(
		"detail", "entry "+after+" is later than entry "+before, "exchange the two",
	)
	d.get("/v1/differences?from=soon").want(400, "invalid_request").says("detail", "1041", "soon")
	d.get("/v1/differences?from=0").want(400, "invalid_request")
	d.get("/v1/differences?from=99999999").want(400, "future_version")
	d.get("/v1/differences?from=1&to=99999999").want(400, "future_version")
	d.get("/v1/differences?from=7d").want(410, "history_trimmed")
	d.get("/v1/differences?from=1&limit=0").want(400, "invalid_request")
}

// changes compares a list of changes with "NAME: CHANGE, NAME: CHANGE".
func (r *reply) changes(list, name, want string) {
	r.Helper()
	got := ""
	rows, _ := r.at(list).([]any)
	for i, row := range rows {
		if i > 0 {
			got += ", "
		}
		got += fmt.Sprint(row.(map[string]any)[name], ": ", row.(map[string]any)["change"])
	}
	if got != want {
		r.Errorf("%s are %s, want %s", list, got, want)
	}
}

// Another namespace's changes are not shown, and a state compared with itself has no differences.
func TestDifferencesOfNamespaces(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.acquire("billing-7", "mine")
		from := d.get("/v1/status").want(200).str("at.index")
		d.post("/v1/leases", `{"agent":"spy","claims":[{"key":"theirs"}]}`, "Interlock-Namespace", "other").want(200)
		for _, to := range []string{"", "&to=" + from} {
			got := d.get("/v1/differences?from=" + from + to).want(200)
			sums, _ := json.Marshal(got.at("sums"))
			none := `{"changed":0,"gone":0,"new":0}`
			if want := fmt.Sprintf(`{"documents":%s,"leases":%[1]s,"tasks":%[1]s,"waiters":%[1]s}`, none); string(sums) != want {
				t.Errorf("%s: %s", to, sums)
			}
		}
		d.get("/v1/differences?from="+from, "Interlock-Namespace", "other").want(200).changes("leases", "key", "theirs: new")
	})
}
