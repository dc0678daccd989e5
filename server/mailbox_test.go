package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

// newMailbox opens a door where the queue "bank" is the single writer of account:{id}.
func newMailbox(t *testing.T) *door {
	t.Helper()
	d := newDoor(t)
	d.put("/v1/queues/bank", ``).want(200)
	d.put("/v1/writers/account", `{"queue":"bank","pattern":"account:{id}"}`).want(200).is("outcome", "set")
	return d
}

// next makes the bank take up a message, and returns its lease.
func (d *door) next() (message *reply, lease string) {
	d.Helper()
	message = d.post("/v1/queues/bank/pull", `{"agent":"banker"}`).want(200).is("outcome", "granted")
	return message, message.str("tasks.0.lease.id")
}

// A caller gets the writer's reply, and none goes around the writer.
func TestAskingASingleWriter(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newMailbox(t)
		const ask = `{"agent":"billing-7","kind":"debit","body":{"cents": 3500},"wait_ms":50000}`
		waiting := d.start(d.request("POST", "/v1/mailbox/account:12", ask, "Idempotency-Key", "one"))
		pass(time.Second)
		message, lease := d.next()
		message.is("tasks.0.task.kind", "debit").is("tasks.0.task.queue", "bank").is(
			"tasks.0.task.claims.0.key", "account:12",
		).is("tasks.0.task.sender", "agent:billing-7")
		if message.num("tasks.0.task.payload.cents") != 3500 {
			t.Error(message.raw)
		}
		put := d.send(d.request("PUT", "/v1/state/account:12", `{"balance":0}`, "Interlock-Lease", lease))
		put.want(403, "writer_only").says("detail", `"bank"`).says("advice.message", "send the change to the writer")
		d.post("/v1/commits", `{"writes":[{"key":"account:12","put":1}]}`).want(403, "writer_only")

		d.post("/v1/leases/"+lease+"/ack", `{"result":{"ok":true},"writes":[{"key":"account:12","put":{"balance":-3500}}],
			"messages":[{"key":"account:13","kind":"credit","body":{"cents":3500}}],"note":"debited"}`, "Idempotency-Key", "ack").want(200)
		got := (<-waiting).want(200).is("outcome", "replied").is("message.state", "done")
		if got.at("reply.ok") != true {
			t.Error(got.raw)
		}
		again := d.post("/v1/mailbox/account:12", ask, "Idempotency-Key", "one").want(200).is("outcome", "replied").is(
			"message.id", got.str("message.id"),
		)
		if again.at("reply.ok") != true {
			t.Error(again.raw)
		}
		d.get("/v1/tasks/"+got.str("message.id")).want(200).is("task.state", "done")
		d.post("/v1/leases/"+lease+"/ack", `{"result":{"ok":false}}`).want(409, "already_replied").is(
			"task.id", got.str("message.id"),
		)

		credit, lease := d.next()
		credit.is("tasks.0.task.sender", "key:account:12").is("tasks.0.task.claims.0.key", "account:13")
		d.post("/v1/leases/"+lease+"/nack", `{"dead":true,"reason":"no such account"}`).want(200)

		first := d.get("/v1/mailbox/account:12/log").want(200).is("first", "1").is("next", "2")
		first.is("entries.0.message", got.str("message.id")).is("entries.0.state", "done").is(
			"entries.0.worker", "banker",
		).is("entries.0.agent", "billing-7")
		if first.num("entries.0.body.cents") != 3500 || first.num("entries.0.document.value.balance") != -3500 ||
			first.at("entries.0.changed") != true {
			t.Error(first.raw)
		}
		d.get("/v1/mailbox/account:13/log").want(200).is("entries.0.state", "dead").is("entries.0.reason", "no such account")
	})
}

func TestMessagesAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newMailbox(t)
		d.post("/v1/mailbox/other", `{}`).want(409, "no_writer")
		d.post("/v1/mailbox/a%2F%2Fb", `{}`).want(400, "invalid_key")
		d.post("/v1/mailbox/account:1", `{"claims":[]}`).want(400, "invalid_request").says("detail", "claims")
		d.post("/v1/mailbox/account:1", `{"body":"`+strings.Repeat("x", interlock.MaxPayloadBytes)+`"}`).want(
			400, "invalid_payload",
		)
		d.get("/v1/mailbox/account:1").want(405, "method_not_allowed")
		d.get("/v1/mailbox/account:1/log?from=x").want(400, "invalid_request").says("detail", "from")
		d.get("/v1/mailbox/account:1/log?limit=0").want(400, "invalid_request")
		d.get("/v1/mailbox/account:1/log").want(200).is("first", "1").is("next", "1")
		// A key may end like the path of a log.
		d.put("/v1/writers/reports", `{"queue":"bank","pattern":"reports/{name}"}`).want(200)
		id := d.post("/v1/mailbox/reports/log", `{}`).want(202).str("message.id")
		d.get("/v1/tasks/"+id).want(200).is("task.claims.0.key", "reports/log")
		d.post("/v1/tasks/"+id+"/cancel", ``).want(200)
		d.get("/v1/mailbox/reports/log/log").want(200).is("entries.0.message", id)

		for range 2 { // a dead message is reported as such to the waiter for its reply
			d.post("/v1/mailbox/account:1", `{"wait_ms":60000,"deadline_ms":1000}`, "Idempotency-Key", "late").want(
				409, "task_settled",
			).is("task.state", "dead")
		}
	})
}

// The messages of one sender are done in its order; the log is read on from where one
// stopped.
func TestTheLogOfAKey(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newMailbox(t)
		for i := range 5 {
			d.post("/v1/mailbox/account:12", fmt.Sprintf(`{"agent":"ann","body":%d,"priority":%d}`, i, i)).want(202).is(
				"outcome", "sent",
			)
		}
		for i := range 5 {
			message, lease := d.next()
			if message.num("tasks.0.task.payload") != int64(i) {
				t.Errorf("message %d: %s", i, message.raw)
			}
			d.post("/v1/leases/"+lease+"/ack", fmt.Sprintf(`{"result":%d}`, 10*i)).want(200)
		}
		from, read := "", 0
		for {
			page := d.get("/v1/mailbox/account:12/log?limit=2" + from).want(200)
			n := 0
			for ; page.at(fmt.Sprintf("entries.%d", n)) != nil; n++ {
				if at := fmt.Sprintf("entries.%d.", n); page.num(at+"body") != int64(read) ||
					page.num(at+"reply") != int64(10*read) {
					t.Errorf("entry %d: %s", read, page.raw)
				}
				read++
			}
			if n == 0 {
				break
			}
			from = "&from=" + page.str("next")
		}
		if read != 5 {
			t.Errorf("%d entries", read)
		}
		d.get("/v1/mailbox/account:12/log", "Interlock-Namespace", "other").want(200).is("next", "1")
	})
}

func TestWritersAreOperators(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newMailbox(t)
		d.get("/v1/writers").want(200).is("writers.0.queue", "bank")
		d.put("/v1/writers/account", `{"queue":"bank","pattern":"other:{id}"}`).want(400, "invalid_pattern").says(
			"detail", "account:{id}",
		)
		d.put("/v1/writers/account", `{}`).want(400, "invalid_request").says("detail", "queue")
		d.put("/v1/patterns/account", `{"pattern":"account:{id}","write":"single-writer","writer_queue":"none"}`).want(
			404, "unknown_queue",
		)
		d.delete("/v1/writers/account").want(200).is("outcome", "deleted")
		d.get("/v1/patterns/account").want(200).is("write", "guarded").is("writer_queue", "")
		d.post("/v1/mailbox/account:12", `{}`).want(409, "no_writer")
		d.send(d.request("PUT", "/v1/state/account:12", `{}`)).want(200)
	})
}
