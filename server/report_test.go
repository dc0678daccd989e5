package server

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// night makes a history with an incident of each kind that one server can have, and what advice is learned from.
func night(d *door, ns ...string) {
	d.Helper()
	post := func(path, format string, args ...any) *reply {
		return d.post(path, fmt.Sprintf(format, args...), ns...)
	}
	open := func(agent string) string {
		return post("/v1/sessions", `{"agent":"%s","ttl_ms":3600000}`, agent).want(200).str("session.id")
	}
	release := func(r *reply) { post("/v1/leases/"+r.str("lease.id")+"/release", `{}`).want(200) }

	for range 2 { // taken in both orders
		one, two := open("night-one"), open("night-two")
		post("/v1/leases", `{"session":"%s","claims":[{"key":"night:a"}]}`, one).want(200)
		post("/v1/leases", `{"session":"%s","claims":[{"key":"night:b"}]}`, two).want(200)
		post("/v1/leases", `{"session":"%s","on_conflict":"wait","claims":[{"key":"night:b"}]}`, one).want(202)
		post("/v1/leases", `{"session":"%s","on_conflict":"wait","claims":[{"key":"night:a"}]}`, two).want(409, "deadlock")
		for _, s := range []string{one, two} {
			d.delete("/v1/sessions/"+s, ns...).want(200)
		}
	}
	post("/v1/leases", `{"agent":"night-slow","ttl_ms":2000,"claims":[{"key":"night:c"}]}`).want(200)
	pass(5 * time.Second)

	d.send(d.request("PUT", "/v1/patterns/night", `{"pattern":"night/{pool}","capacity":4}`, ns...)).want(200)
	for range 20 {
		release(post("/v1/leases", `{"agent":"night-three","claims":[{"key":"night/gpu","permits":1}]}`).want(200))
	}
	held := post("/v1/leases", `{"agent":"night-four","ttl_ms":600000,"claims":[{"key":"night-hot"}]}`).want(200)
	for range 12 {
		ticket := post(
			"/v1/leases", `{"agent":"night-five","ttl_ms":600000,"on_conflict":"wait","claims":[{"key":"night-hot"}]}`,
		).want(202)
		pass(6 * time.Second)
		release(held)
		held = d.get("/v1/tickets/"+ticket.str("ticket.id"), ns...).want(200)
	}
	d.send(d.request("PUT", "/v1/queues/night", `{}`, ns...)).want(200)
	post("/v1/tasks", `{"queue":"night","max_attempts":1}`).want(202)
	task := post("/v1/queues/night/pull", `{"agent":"night-six"}`).want(200)
	post("/v1/leases/"+task.str("tasks.0.lease.id")+"/nack", `{"reason":"no answer"}`).want(200)
	post("/v1/leases", `{"agent":"night-seven","on_conflict":"wait","claims":[{"key":"night-hot"}]}`).want(202)
	pass(90 * time.Second)
}

func tourReport(d *door) {
	night(d)
	d.get("/v1/report").want(200)
	d.get("/v1/report?since=7d&until=1d").want(200)
	d.get("/v1/report?since=1m&until=1h").want(400)
	pass(time.Hour)
}

// A report has the incidents with the moment before them, and the advice; nothing of another namespace, and no id.
func TestReport(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		other := []string{"Interlock-Namespace", "another"}
		secret := d.post("/v1/leases", `{"agent":"spy","ttl_ms":1000,"claims":[{"key":"night:a"}]}`, other...).want(200)
		pass(time.Minute)
		d.get("/v1/report?since=1h").want(200).is("verdict", "No incidents. No agent asked for a key.")
		night(d)
		got := d.get("/v1/report").want(200)
		var kinds []string
		for i := range got.body["incidents"].([]any) {
			at := func(name string) string { return fmt.Sprint(got.at(fmt.Sprintf("incidents.%d.%s", i, name))) }
			kinds = append(kinds, fmt.Sprintf("%s ×%s %s", at("kind"), at("count"), at("keys")))
			if at("kind") != "deadlock" {
				continue
			}
			d.get("/v1/at?path=waits&index="+at("before")).want(200).is("answer.edges.0.waiter.agent", "night-one").is(
				"answer.edges.0.blocker.agent", "night-two",
			)
		}
		want := "deadlock ×2 [night:a night:b]; lost_lease ×1 [night:c]; dead_letter ×1 []; stuck_wait ×1 [night-hot]"
		if text := strings.Join(kinds, "; "); text != want {
			t.Errorf("the incidents are %s, want %s", text, want)
		}
		var advice []string
		for i := range got.body["advice"].([]any) {
			advice = append(advice, got.str(fmt.Sprintf("advice.%d.kind", i)))
		}
		if text := strings.Join(advice, " "); text != "lock_order hot_key unused_capacity" {
			t.Errorf("the advice is %s", text)
		}
		got.is("keys.0.key", "night-hot").is(
			"verdict",
			"5 incidents: 2 deadlocks, 1 lost lease, 1 dead letter, 1 long wait. "+
				"38 grants, 12 waits, 1m12s lost, most at night-hot: 1m12s. 1 wait goes on, 1m30s so far.",
		)
		for _, text := range []string{secret.str("lease.id"), "spy", "another"} {
			if strings.Contains(string(got.raw), text) {
				t.Errorf("the report shows %s", text)
			}
		}
		d.get("/v1/report", other...).want(200).says("verdict", "1 lost lease")

		// What was before the period counts for nothing, but for a wait that goes on.
		got = d.get("/v1/report?since=1m").want(200).is("incidents.0.kind", "stuck_wait")
		if n := len(got.body["incidents"].([]any)); n != 1 || got.num("all.grants") != 0 {
			t.Errorf("%d incidents and %d grants in the last minute", n, got.num("all.grants"))
		}
	})
}
