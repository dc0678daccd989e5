package server

import (
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/prose"
)

func TestWhy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.get("/v1/why?key=account:1").want(200).is(
			"text",
			"account:1 is free: neither it nor a conflicting key above or below it is held, and there are no waiters.",
		)
		d.get("/v1/why?agent=billing-7").want(200).is("text", "billing-7 holds nothing. It is not waiting.")

		// support-2 waits for billing-7, which waits for audit-1, which thinks.
		sessions := map[string]string{}
		for _, agent := range []string{"audit-1", "billing-7", "support-2"} {
			sessions[agent] = d.session(agent)
		}
		take := func(agent, key, purpose string, want int) {
			t.Helper()
			d.post(
				"/v1/leases",
				`{"session":"`+sessions[agent]+`","on_conflict":"wait","purpose":"`+purpose+`","claims":[{"key":"`+key+`"}]}`,
			).want(want)
		}
		take("audit-1", "org:acme", "yearly audit", 200)
		take("billing-7", "account:1", "late fee", 200)
		take("billing-7", "org:acme/books", "", 202)
		take("support-2", "account:1", "", 202)
		pass(12 * time.Second)

		key := d.get("/v1/why?key=account:1").want(200)
		key.is(
			"text",
			`account:1 is held by billing-7 (live, "late fee") for 12 s. 1 waiter is in line, first support-2 for 12 s. billing-7 waits for org:acme/books, which lies under org:acme, which audit-1 holds.`,
		)
		key.says("advice.message", "the root blocker is audit-1 with org:acme")
		key.is("chain.0.agent", "billing-7").is("chain.0.does", "holds").is("chain.1.does", "waits").is(
			"chain.2.agent", "audit-1",
		).is("chain.2.does", "holds")

		agent := d.get("/v1/why?agent=support-2").want(200)
		agent.is(
			"text",
			`support-2 holds nothing. support-2 waits for account:1, which billing-7 holds; billing-7 itself waits for org:acme/books, which lies under org:acme, which audit-1 holds.`,
		)
		agent.says("advice.message", "the root blocker is audit-1")
		d.get("/v1/why?agent=billing-7").want(200).says(
			"text",
			"billing-7 holds account:1 (exclusive) for 12 s. 1 other waits for it. billing-7 waits for org:acme/books, which "+
				"lies under org:acme, which audit-1 holds.",
		)
		d.get("/v1/why?agent=audit-1").want(200).is(
			"text", "audit-1 holds org:acme (exclusive) for 12 s. 1 other waits for it. It is not waiting.",
		).is("advice.message", "it is working: let it finish")

		pass(10 * time.Second)
		d.get("/v1/why?key=account:1").says("text", "billing-7 (no heartbeat for 22 s").says(
			"advice.message", "is silent; the key is passed on in 8 s at the latest",
		)
		d.get("/v1/why?agent=audit-1").says("advice.message", "loses its leases in 8 s at the latest")

		for _, bad := range []string{"", "?key=", "?key=a&agent=b"} {
			d.get("/v1/why"+bad).want(400, "invalid_request")
		}
		d.get("/v1/why?key=a//b").want(400, "invalid_key")
	})
}

// A key has no holder but a line that waits for one above it: why names the party at the end.
func TestWhyNobodyHasIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		ask := func(agent, key string, want int) *reply {
			t.Helper()
			return d.post("/v1/leases", `{"agent":"`+agent+`","on_conflict":"wait","claims":[{"key":"`+key+`"}]}`).want(want)
		}
		ask("audit-1", "org:acme/books", 200)
		ask("billing-7", "org:acme", 202)
		ask("support-2", "org:acme/tickets", 202).is("conflict_kind", "ancestor").is("holders.0.agent", "audit-1").is(
			"holders.0.key", "org:acme/books",
		).
			says(
				"advice.message",
				"org:acme/tickets lies under org:acme, which has 1 earlier waiter, which waits for org:acme/books, which is "+
					"held by audit-1 (live)",
			)

		key := d.get("/v1/why?key=org:acme/tickets").want(200)
		key.is("text", "org:acme/tickets has no holder at the moment. 1 waiter is in line, first support-2 for less "+
			"than 1 s. "+
			"support-2 waits for org:acme/tickets, behind billing-7 in line for org:acme, which covers org:acme/books, which "+
			"audit-1 holds.")
		key.is("chain.1.agent", "billing-7").is("chain.1.key", "org:acme").is("chain.2.does", "holds").is(
			"chain.2.key", "org:acme/books",
		)
		key.is(
			"advice.message",
			"the root blocker is audit-1 with org:acme/books: if it cannot finish, an operator can revoke its lease",
		)
	})
}

// A party with an offer of a key that it has not taken up stands in no line.
func TestWhyFirstInLine(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		first := d.post("/v1/leases", `{"agent":"A","claims":[{"key":"account:1"}]}`).want(200).str("lease.id")
		for _, agent := range []string{"B", "C"} {
			d.post("/v1/leases", `{"agent":"`+agent+`","on_conflict":"wait","claims":[{"key":"account:1"}]}`).want(202)
		}
		d.post("/v1/leases/"+first+"/release", ``).want(200)
		key := d.get("/v1/why?key=account:1").want(200)
		key.says(
			"text", "account:1 is held by B (offered, gone in 30 s unless accepted)", "1 waiter is in line, first C for",
		)
	})
}

// An agent may wait in several lines: why tells each of them.
func TestWhySeveralWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		ask := func(agent, key string, want int) {
			t.Helper()
			d.post("/v1/leases", `{"agent":"`+agent+`","on_conflict":"wait","claims":[{"key":"`+key+`"}]}`).want(want)
		}
		for _, holder := range []string{"a1", "a2", "a3", "a4", "a5"} {
			ask(holder, "account:"+holder, 200)
		}
		ask("b", "account:a1", 202)
		ask("b", "account:a2", 202)
		two := d.get("/v1/why?agent=b").want(200)
		two.is("text", "b holds nothing. b waits for account:a1, which a1 holds. b waits for account:a2, which a2 holds.")
		two.is(
			"advice.message", "it waits in several lines, with the root blockers a1 and a2: when one of them releases, its "+
				"line moves",
		)
		two.is("chain.1.agent", "a1").is("waits.0.chain.1.agent", "a1").is("waits.1.chain.1.agent", "a2").is(
			"waits.1.chain.0.key", "account:a2",
		)

		// The flow of a session may wait several times, too; each chain begins with its own wait.
		s := d.session("c")
		for _, key := range []string{"account:a1", "account:a2"} {
			d.post("/v1/leases", `{"session":"`+s+`","on_conflict":"wait","claims":[{"key":"`+key+`"}]}`).want(202)
		}
		d.get("/v1/why?agent=c").want(200).is(
			"text", "c holds nothing. c waits for account:a1, which a1 holds. c waits for account:a2, which a2 holds.",
		)

		for i := range prose.MaxToldWait {
			ask("b", "account:a"+string(rune('1'+i%5)), 202)
		}
		many := d.get("/v1/why?agent=b").want(200).says("text", "It has 2 more waits.")
		if n := many.num("more_waits"); n != 2 {
			t.Errorf("%d more waits", n)
		}
		if n := len(many.at("waits").([]any)); n != prose.MaxToldWait {
			t.Errorf("%d waits", n)
		}
		many.says("advice.message", "the root blockers a1, a2, a3 and 2 more")
	})
}

// A message that waits for a person holds back what its sender sent later: why reports that for a
// key without holder and line.
func TestWhyMessageAsks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newTaskDoor(t)
		d.put("/v1/writers/account", `{"queue":"fees","pattern":"account:{id}"}`).want(200)
		first := d.post(
			"/v1/mailbox/account:1", `{"agent":"ann","kind":"close","approval":{"question":"may she?"}}`,
		).want(202).str("message.id")
		d.post("/v1/mailbox/account:1", `{"agent":"ann","kind":"credit"}`).want(202)
		pass(12 * time.Second)
		free := d.get("/v1/why?key=account:1").want(200)
		free.says("text", "account:1 is free", `Message `+first+
			` of ann to account:1 waits for a decision on "may she?", asked 12 s ago; `+
			"1 later message of its sender to account:1 waits behind it: messages of one sender to a key keep their order.")
		free.is("advice.action", "ask_human").says("advice.message", "interlock approval get "+first)
		d.get("/v1/why?agent=ann").want(200).says("text", "ann holds nothing. It is not waiting. Message "+first).is(
			"advice.action", "ask_human",
		)
		if raw := d.get("/v1/why?key=account:2").want(200).raw; strings.Contains(raw, first) {
			t.Error(raw)
		}
		for range 5 {
			d.submit(`,"agent":"bob","approval":{"question":"and this?"},"claims":[{"key":"doc:1"}]`)
		}
		d.get("/v1/why?agent=bob").want(200).says("text", "; until then it blocks no other request. 2 others wait in the "+
			"same way.")
	})
}

// With a credential and without a session, each agent is a sender of its own: a question about
// a message of one does not hold back the messages of others.
func TestSendersOfOneCredential(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		acme := []string{"Interlock-Namespace", "acme"}
		d.put("/v1/queues/fees", ``, acme...).want(200)
		d.put("/v1/writers/account", `{"queue":"fees","pattern":"account:{id}"}`, acme...).want(200)
		secret, line := newSecret(d, "swarm", "acme")
		d.reopen(func(cfg *Config) { cfg.Credentials = credentialsFile(d, line+" agent worker=fees") })
		as := []string{"Authorization", "Bearer " + secret}
		send := func(body, sender string) string {
			t.Helper()
			return d.post("/v1/mailbox/account:1", body, as...).want(202).is("message.sender", sender).str("message.id")
		}
		send(`{"agent":"ann","approval":{"question":"may she?"}}`, "principal:swarm agent:ann")
		send(`{"agent":"ann"}`, "principal:swarm agent:ann")
		bob := send(`{"agent":"bob"}`, "principal:swarm agent:bob")
		send(`{"flow":"nightly"}`, "principal:swarm flow:nightly")
		send(`{}`, "principal:swarm")
		d.post("/v1/queues/fees/pull", `{}`, as...).want(200).is("tasks.0.task.id", bob)
	})
}
