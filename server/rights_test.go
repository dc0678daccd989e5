package server

import (
	"testing"

	"github.com/interlockdev/interlock"
)

// credentialed opens a door for the namespace acme with credentials of some rights, and
// returns the headers of each by its name.
func credentialed(t *testing.T, list ...interlock.Principal) (d *door, as map[string][]string) {
	t.Helper()
	as = map[string][]string{}
	var lines []string
	for i := range list {
		secret, line, err := NewCredential(list[i], "acme")
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
		as[list[i].Name] = []string{"Authorization", "Bearer " + secret}
	}
	c := credentialsFile(t, lines...)
	d = newDoor(t)
	d.reopen(func(cfg *Config) { cfg.Credentials = c })
	return d, as
}

// A credential that is no worker of the writer's queue neither pulls from it nor writes under the
// lease of one that is; and one that a pattern does not let claim a key gets no task that does.
func TestOnlyTheWriterWrites(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		worker := interlock.RoleAgent | interlock.RoleWorker
		d, as := credentialed(
			t,
			interlock.Principal{Name: "ops", Roles: interlock.AllRoles, Queues: []string{"*"}},
			interlock.Principal{Name: "teller", Roles: worker, Queues: []string{"bank"}},
			interlock.Principal{Name: "plain", Roles: worker, Queues: []string{"*"}},
			interlock.Principal{Name: "closer", Roles: worker, Queues: []string{"*"}, Groups: []string{"closing"}},
		)
		ops, teller, plain, closer := as["ops"], as["teller"], as["plain"], as["closer"]
		d.put("/v1/queues/bank", `{"pull":["teller"],"submit":["plain"],"admin":["group:closing"]}`, ops...).want(200)
		d.put("/v1/writers/account", `{"queue":"bank","pattern":"account:{id}"}`, ops...).want(200)
		d.post("/v1/mailbox/account:1", `{"kind":"credit","body":1}`, closer...).want(403, "forbidden").says(
			"detail", `"closer"`, `"plain"`,
		)
		sent := d.post("/v1/mailbox/account:1", `{"kind":"credit","body":1}`, plain...).want(202).str("message.id")
		d.post("/v1/queues/bank/pull", `{}`, plain...).want(403, "forbidden").says("detail", `"plain"`, `"bank"`, `"teller"`)
		lease := d.post("/v1/queues/bank/pull", `{}`, teller...).want(200).str("tasks.0.lease.id")
		const write = `{"writes":[{"key":"account:1","put":1}]}`
		d.post("/v1/leases/"+lease+"/ack", write, plain...).want(403, "forbidden").says("detail", `"teller"`)
		d.post("/v1/leases/"+lease+"/ack", write, teller...).want(200)
		d.get("/v1/tasks/"+sent, plain...).want(200).is("task.state", "done")

		d.put("/v1/queues/jobs", `{}`, ops...).want(200)
		d.put(
			"/v1/patterns/ledger", `{"pattern":"ledger:{id}","allow":[{"principal":"group:closing"}],"write":"lease"}`, ops...,
		).want(200)
		task := d.post(
			"/v1/tasks", `{"queue":"jobs","claims":[{"key":"ledger:7"}],"group":"closing"}`, closer...,
		).want(202).str("task.id")
		d.post("/v1/queues/jobs/pull", `{}`, plain...).want(200).is("outcome", "empty")
		d.post("/v1/leases", `{"claims":[{"key":"account:2"}],"group":"sales"}`, closer...).want(403, "forbidden").says(
			"detail", `"closing"`,
		)
		pulled := d.post("/v1/queues/jobs/pull", `{}`, closer...).want(200).is("tasks.0.task.id", task)
		lease = pulled.str("tasks.0.lease.id")
		d.put("/v1/state/ledger:7", `{}`, append([]string{"Interlock-Lease", lease}, plain...)...).want(403, "mode_forbidden")
		d.post("/v1/leases/"+lease+"/statement", `{}`, plain...).want(403, "mode_forbidden")
		d.put("/v1/state/ledger:7", `{}`, append([]string{"Interlock-Lease", lease}, closer...)...).want(200)
		d.post("/v1/leases/"+lease+"/statement", `{}`, closer...).want(200)

		task = d.post("/v1/tasks", `{"queue":"jobs"}`, plain...).want(202).str("task.id")
		d.post("/v1/tasks/"+task+"/cancel", `{}`, closer...).want(403, "forbidden").says(
			"detail", "no administrators besides operators: ask an operator to do it",
		)
		d.post("/v1/queues/bank/pause", `{}`, plain...).want(403, "forbidden").says(
			"detail", `ask one of its administrators, which are "group:closing", or an operator`,
		)
		d.post("/v1/tasks/"+task+"/cancel", `{}`, plain...).want(200)
	})
}
