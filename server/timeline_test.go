package server

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func tourTimeline(d *door) {
	first := d.session("bars-one")
	lease := d.post(
		"/v1/leases", `{"session":"`+first+`","purpose":"late fee","claims":[{"key":"bars:1"}]}`,
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	).want(200)
	d.put("/v1/patterns/bars", `{"pattern":"bars:{id}","audit_refusals":true}`).want(200)
	d.post("/v1/leases", `{"agent":"bars-two","on_conflict":"wait","claims":[{"key":"bars:1"}]}`).want(202)
	pass(2 * time.Second)
	d.post("/v1/leases/"+lease.str("lease.id")+"/release", `{}`).want(200)
	d.put("/v1/queues/bars", `{"backoff_ms":1000}`).want(200)
	const task = `{"queue":"bars","kind":"sum","agent":"boss","flow":"f","purpose":"p","claims":[{"key":"bars:9"}]}`
	d.post("/v1/tasks", task, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").want(202)
	for _, how := range []string{"nack", "ack"} {
		pulled := d.post("/v1/queues/bars/pull", `{"agent":"bars-three"}`).want(200)
		if how == "ack" {
			d.post("/v1/leases", `{"agent":"bars-four","on_conflict":"wait","claims":[{"key":"bars:9"}]}`).want(202)
		}
		d.post("/v1/leases/"+pulled.str("tasks.0.lease.id")+"/"+how, `{}`).want(200)
		pass(5 * time.Second)
		if how == "ack" {
			fence := pulled.str("tasks.0.lease.fence")
			d.post("/v1/fences/check", `{"key":"bars:9","fence":"`+fence+`"}`).want(409, "fenced")
		}
	}
	d.get("/v1/timeline?key=bars:1").want(200)
	d.get("/v1/timeline?ended=true").want(200)
	d.get("/v1/timeline?ended=1").want(400)
	d.get("/v1/timeline?since=12h").want(200)
	d.get("/v1/timeline?since=1h&until=1m&agent=bars-two").want(200)
	d.post("/v1/fences/check", `{"key":"bars:1","fence":"`+lease.str("lease.fence")+`"}`).want(409, "fenced")
	pass(time.Second)
	d.get("/v1/timeline?key=bars:1").want(200)
	d.get("/v1/timeline?since=1m&until=1h").want(400)
	d.get("/v1/timeline?since=soon").want(400)
	d.delete("/v1/sessions/" + first).want(200)
	d.delete("/v1/queues/bars").want(200)
	d.delete("/v1/patterns/bars").want(200)
	pass(time.Minute)
}

// A timeline has the hold, the wait for it, and the hand-off; nothing of another namespace; and no id.
func TestTimeline(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		other := []string{"Interlock-Namespace", "default-b"}
		lease := d.post(
			"/v1/leases", `{"agent":"billing-7","purpose":"late fee","claims":[{"key":"a:1"}]}`,
			"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		).want(200)
		foreign := d.post("/v1/leases", `{"agent":"spy","claims":[{"key":"a:1"}]}`, other...).want(200)
		pass(time.Second)
		ticket := d.post("/v1/leases", `{"agent":"support-2","on_conflict":"wait","claims":[{"key":"a:1"}]}`).want(202)
		pass(3 * time.Second)
		going := d.get("/v1/timeline").want(200)
		going.is("bars.1.kind", "wait").is("links.0.kind", "blocked_by")
		d.post("/v1/leases/"+lease.str("lease.id")+"/release", `{}`).want(200)
		pass(time.Second)

		got := d.get("/v1/timeline?key=a:1").want(200)
		var bars []string
		for i := range got.body["bars"].([]any) {
			at := func(name string) string { return fmt.Sprint(got.at(fmt.Sprintf("bars.%d.%s", i, name))) }
			bars = append(bars, at("kind")+" "+at("agent")+" "+at("outcome")+" "+at("trace_id"))
		}
		want := []string{
			"hold billing-7 released 0af7651916cd43dd8448eb211c80319c", "wait support-2 granted <nil>",
			"hold support-2 <nil> <nil>",
		}
		if fmt.Sprint(bars) != fmt.Sprint(want) {
			t.Errorf("the bars are %q, want %q", bars, want)
		}
		links := fmt.Sprint(got.body["links"])
		if links != "[map[from:1 kind:blocked_by to:0] map[from:0 kind:handed_on to:2]]" {
			t.Errorf("the links are %s", links)
		}
		for _, secret := range []string{lease.str("lease.id"), ticket.str("ticket.id"), foreign.str("lease.id"), "spy"} {
			if strings.Contains(string(got.raw), secret) {
				t.Errorf("the timeline shows %s", secret)
			}
		}
		d.get("/v1/timeline?agent=support-2").want(200).is("bars.0.kind", "wait").is("bars.1.kind", "hold")
		d.get("/v1/timeline", other...).want(200).is("lanes.0", "spy")

		// A part of it: what went on at that time.
		pass(time.Hour)
		d.get("/v1/timeline?since=59m45s&key=a:1").want(200).is("lanes.0", "support-2")
		if n := len(d.get("/v1/timeline?since=3h&until=2h").want(200).body["bars"].([]any)); n != 0 {
			t.Errorf("%d bars are older than the journal", n)
		}
	})
}
