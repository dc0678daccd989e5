package server

import (
	"testing"
	"time"
)

// A person decides; the worker that continues gets the decision, and the changes since.
func TestAPersonDecides(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		d.post("/v1/commits", `{"agent":"ann","writes":[{"key":"account:12","put":{"balance":100}}]}`).want(200)
		id := d.submit(lateFee)
		lease := d.pull()
		const question = `{"question":"May I refund 900?\u001b[2J","limit_ms":3600000,"on_limit":"denied","reads":[{"key":"account:12","version":"1"}]}`
		for range 2 {
			asked := d.post("/v1/leases/"+lease+"/ask", question, "Idempotency-Key", "ask").want(200).is("outcome", "asking").is(
				"task.state", "asking",
			)
			asked.is("task.approval.agent", "worker").is("task.approval.on_limit", "denied").is(
				"advice.action", "ask_human",
			).says("advice.message", "May I refund 900?")
			if asked.num("task.attempt") != 0 || contains(asked.raw, `\u001b`) {
				t.Error(asked.raw)
			}
		}
		// it holds nothing meanwhile
		bob := d.post("/v1/leases", `{"agent":"bob","claims":[{"key":"account:12"}]}`).want(200).str("lease.id")
		d.post("/v1/leases/"+lease+"/ack", ``).want(410, "task_moved").is("task.state", "asking")
		pass(time.Second)
		d.post(
			"/v1/commits", `{"agent":"bob","leases":["`+bob+`"],"writes":[{"key":"account:12","put":{"balance":5}}]}`,
		).want(200)

		list := d.get("/v1/approvals").want(200).is("tasks.0.id", id).is(
			"tasks.0.approval.packet.stale.0.key", "account:12",
		).is("tasks.0.kind", "late_fee")
		if list.num("tasks.0.approval.left_ms") != 3_599_000 || list.num("tasks.0.payload.cents") != 3500 {
			t.Error(list.raw)
		}
		path := "/v1/approvals/" + id
		d.post(path, `{}`).want(400, "invalid_request").says("detail", "verdict")
		d.post(path, `{"verdict":"approved"}`).want(400, "invalid_request").says("detail", "who answers")
		d.post("/v1/approvals/q_00000000000000000000000000000001", `{"verdict":"denied","by":"eve"}`).want(
			404, "unknown_task",
		)
		d.post(path, `{"verdict":"denied","by":"eve"}`, "Interlock-Namespace", "other").want(404, "unknown_task")
		d.post(path, `{"verdict":"approved","by":"eve","reason":"within policy"}`).want(200).is("outcome", "approved").is(
			"task.state", "waiting",
		)
		d.post(path, `{"verdict":"denied","by":"bob"}`).want(409, "not_asking").says("detail", `approved by "eve"`).is(
			"task.id", id,
		)
		d.delete("/v1/sessions/" + d.session("x")).want(200)
		d.get("/v1/tasks/"+id).want(200).is("task.approval.by", "eve").is("task.approval.packet.stale.0.now.agent", "bob")

		pass(time.Minute) // bob's lease is over
		woken := d.post("/v1/queues/fees/pull", ``).want(200).is("tasks.0.task.approval.verdict", "approved").is(
			"tasks.0.task.approval.reason", "within policy",
		)
		woken.is("tasks.0.task.approval.packet.stale.0.key", "account:12")
		if got := d.get("/v1/approvals").want(200); got.at("tasks.0") != nil {
			t.Error(got.raw)
		}
	})
}

// Before its first run, by policy, and by the name of a credential.
func TestApprovalsByThemselves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		first := d.submit(`,"approval":{"question":"pay?"}`)
		d.post("/v1/tasks", `{"queue":"fees","wait_ms":50000,"approval":{"question":"pay?","limit_ms":1000}}`).want(
			409, "task_settled",
		).
			is("task.state", "dead").is("task.approval.by", "policy").says("task.reason", "denied by policy")
		d.post("/v1/queues/fees/pull", ``).want(200).is("outcome", "empty")
		page := d.get("/v1/approvals?limit=1").want(200).is("tasks.0.id", first)
		if page.at("cursor") != nil {
			t.Error(page.raw)
		}
		second := d.submit(`,"approval":{"question":"pay?","limit_ms":1000,"on_limit":"approved"}`)
		page = d.get("/v1/approvals?limit=1").want(200)
		d.get("/v1/approvals?limit=1&cursor="+page.str("cursor")).want(200).is("tasks.0.id", second)
		pass(time.Second)
		d.get("/v1/tasks/"+second).want(200).is("task.state", "waiting")

		// A caller without a name answers as the credential's principal.
		acme := []string{"Interlock-Namespace", "acme"}
		d.put("/v1/queues/fees", ``, acme...).want(200)
		third := d.post("/v1/tasks", `{"queue":"fees","approval":{"question":"pay?"}}`, acme...).want(202).str("task.id")
		bearer := "Bearer " + d.reopenWithCredentials()
		got := d.post("/v1/approvals/"+third, `{"verdict":"denied"}`, "Authorization", bearer)
		got.want(200).is("outcome", "denied").is("task.state", "dead").is("task.approval.by", "billing-swarm")
		d.put("/v1/queues/fees", ``, "Authorization", bearer).want(403, "forbidden")
		d.post("/v1/queues/fees/pause", ``, "Authorization", bearer).want(403, "forbidden")
		d.put("/v1/writers/account", `{"queue":"fees"}`, "Authorization", bearer).want(403, "forbidden")
		d.delete("/v1/writers/account", "Authorization", bearer).want(403, "forbidden")
	})
}

// The submitter of a task, or a principal that asked about it, cannot approve it under any name;
// the answer of another has its credential beside the name that it claims.
func TestNobodyApprovesTheirOwnWork(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		desk, deskLine := newSecret(d, "desk", "default")
		shop, shopLine := newSecret(d, "shop", "default")
		agent, agentLine := newSecret(d, "agent-7", "default")
		c := credentialsFile(d, deskLine+" agent approver", shopLine+" worker=* approver", agentLine+" approver")
		d.reopen(func(cfg *Config) { cfg.Credentials = c })
		as := func(secret string) []string { return []string{"Authorization", "Bearer " + secret} }

		id := d.post("/v1/tasks", `{"queue":"fees","approval":{"question":"start?"}}`, as(desk)...).want(202).str("task.id")
		path := "/v1/approvals/" + id
		const yes = `{"verdict":"approved","by":"the CFO"}`
		d.post(path, yes, as(desk)...).want(403, "forbidden").says("detail", `credential "desk" submitted the task`).is(
			"task.state", "asking",
		)
		answered := d.post(path, yes, as(shop)...).want(200).is("task.approval.by", "the CFO").is(
			"task.approval.principal", "shop",
		)
		if answered.at("warnings.0") != nil {
			t.Error(answered.raw)
		}
		lease := d.post("/v1/queues/fees/pull", ``, as(shop)...).want(200).str("tasks.0.lease.id")
		d.post("/v1/leases/"+lease+"/ask", `{"question":"refund?"}`, as(shop)...).want(200).is("outcome", "asking")
		d.post(path, yes, as(shop)...).want(403, "forbidden").says("detail", "cannot approve its own work")
		d.post(path, yes, as(desk)...).want(403, "forbidden")
		denied := d.post(path, `{"verdict":"denied","by":"the CFO"}`, as(agent)...).want(200)
		denied.is("task.reason", "denied by agent-7, claiming to be the CFO")
		events := d.get("/v1/events", as(agent)...).raw
		if !contains(events, `"actor":"agent-7"`) {
			t.Errorf("the trail does not name the credential that answered: %s", events)
		}
	})
}

// A queue names its approvers, and needs two of them. Partial approvals are shown.
func TestSeveralApprovals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		secrets, lines := map[string][]string{}, []string{}
		for name, rights := range map[string]string{
			"ops": "operator agent", "ann": "approver", "bob": "approver group=finance", "eve": "approver",
		} {
			secret, line := newSecret(d, name, "default")
			secrets[name], lines = []string{"Authorization", "Bearer " + secret}, append(lines, line+" "+rights)
		}
		c := credentialsFile(d, lines...)
		d.reopen(func(cfg *Config) { cfg.Credentials = c })
		d.put("/v1/queues/fees", `{"approvers":["ann","group:finance"],"min_approvals":17}`, secrets["ops"]...).want(
			400, "invalid_request",
		)
		d.put("/v1/queues/fees", `{"approvers":["ann","group:finance"],"min_approvals":2}`, secrets["ops"]...).want(200)
		d.get("/v1/queues/fees", secrets["eve"]...).want(200).is("queue.approvers.1", "group:finance")
		submitted := d.post(
			"/v1/tasks", `{"queue":"fees","approval":{"question":"pay?","on_limit":"approved","limit_ms":60000}}`,
			secrets["ops"]...,
		).want(202)
		submitted.says("warnings.0", "on_limit approved has no effect in queue \"fees\"")
		id := submitted.str("task.id")
		path := "/v1/approvals/" + id
		const yes = `{"verdict":"approved","by":"the CFO"}`
		d.post(path, yes, secrets["eve"]...).want(403, "forbidden").says("detail", "is not an approver")
		for range 2 {
			first := d.post(path, yes, secrets["ann"]...).want(200).is("task.state", "asking").is(
				"task.approval.on_limit", "denied",
			)
			first.is("outcome", "counted").says(
				"advice.message", "with 1 of 2 approvals, 1 missing; further approvals are needed",
			)
			first.is("task.approval.approvals.0.principal", "ann").is("task.approval.approvals.0.by", "the CFO")
			if first.num("task.approval.needed") != 2 || first.at("task.approval.approvals.1") != nil {
				t.Error(first.raw)
			}
		}
		d.get("/v1/approvals", secrets["eve"]...).want(200).is("tasks.0.approval.approvals.0.principal", "ann")
		d.post(path, yes, secrets["bob"]...).want(200).is("outcome", "approved").is("task.state", "waiting").is(
			"task.approval.principal", "bob",
		).is("task.approval.approvals.0.principal", "ann")
	})
}

// Without credentials an answer reports that it is a courtesy.
func TestApprovalWithoutCredentials(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		id := d.submit(`,"approval":{"question":"pay?"}`)
		answered := d.post("/v1/approvals/"+id, `{"verdict":"approved","by":"ann"}`).want(200).says("warnings.0", "courtesy")
		if answered.at("task.approval.principal") != nil {
			t.Error(answered.raw)
		}
	})
}
