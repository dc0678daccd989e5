package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/spans"
)

// scene lets a holder, a waiter, a late holder, two sessions in a deadlock, a task with two attempts, and a stale
// commit act.
func scene(d *door) {
	d.put("/v1/patterns/acct", `{"pattern":"acct:{id}","audit_refusals":true}`).want(200)
	lease := d.post(
		"/v1/leases", `{"agent":"billing-7","purpose":"late fee","claims":[{"key":"acct:1"}]}`,
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	).want(200)
	pass(time.Second)
	ticket := d.post("/v1/leases", `{"agent":"support-2","on_conflict":"wait","claims":[{"key":"acct:1"}]}`).want(202)
	pass(3 * time.Second)
	d.post("/v1/leases/"+lease.str("lease.id")+"/release", `{}`).want(200)
	d.post("/v1/fences/check", `{"key":"acct:1","fence":"`+lease.str("lease.fence")+`"}`).want(409, "fenced")
	got := d.get("/v1/tickets/" + ticket.str("ticket.id")).want(200)
	pass(time.Second)
	d.post("/v1/leases/"+got.str("lease.id")+"/release", `{}`).want(200)

	one, two := d.session("left"), d.session("right")
	x := d.post("/v1/leases", `{"session":"`+one+`","claims":[{"key":"x"}]}`).want(200).str("lease.id")
	y := d.post("/v1/leases", `{"session":"`+two+`","claims":[{"key":"y"}]}`).want(200).str("lease.id")
	waiting := d.post("/v1/leases", `{"session":"`+one+`","on_conflict":"wait","claims":[{"key":"y"}]}`).want(202)
	pass(time.Second)
	d.post("/v1/leases", `{"session":"`+two+`","on_conflict":"wait","claims":[{"key":"x"}]}`).want(409, "deadlock")
	d.post("/v1/leases/"+y+"/release", `{}`).want(200)
	y = d.get("/v1/tickets/" + waiting.str("ticket.id")).want(200).str("lease.id")
	pass(time.Second)
	d.post("/v1/leases/"+x+"/release", `{}`).want(200)
	d.post("/v1/leases/"+y+"/release", `{}`).want(200)

	d.put("/v1/queues/sums", `{"backoff_ms":1000}`).want(200)
	d.post(
		"/v1/tasks", `{"queue":"sums","kind":"sum","agent":"boss","claims":[{"key":"acct:2"}]}`,
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-c7ad6b7169203332-01",
	).want(202)
	for _, how := range []string{"nack", "ack"} {
		pass(time.Second)
		id := d.post("/v1/queues/sums/pull", `{"agent":"worker-1"}`).want(200).str("tasks.0.lease.id")
		pass(2 * time.Second)
		d.post("/v1/leases/"+id+"/"+how, `{}`).want(200)
	}
	first := `{"agent":"late","reads":[{"key":"acct:3","absent":true}],"writes":[{"key":"acct:3","put":{}}]}`
	d.post("/v1/commits", first).want(200)
	d.post("/v1/commits", first).want(412, "stale")
	pass(time.Second)
}

// spansOf returns the spans of a time.
func spansOf(d *door, since time.Time, before time.Time) []spans.Span {
	d.Helper()
	var t api.Timeline
	answer := d.get("/v1/timeline?ended=true&since=" + since.UTC().Format(time.RFC3339Nano) +
		"&until=" + before.UTC().Format(time.RFC3339Nano)).want(200)
	if err := json.Unmarshal([]byte(answer.raw), &t); err != nil {
		d.Fatal(err)
	}
	return spans.Of("default", &t, before)
}

// describeSpans returns a line for each span. Ids, which are random in tests, become numbers.
func describeSpans(list []spans.Span, began time.Time) (lines []string) {
	traces, ids := map[spans.TraceID]int{}, map[spans.SpanID]string{}
	for i := range list {
		ids[list[i].ID] = fmt.Sprintf("s%d", i)
	}
	name := func(id spans.SpanID) string {
		if known := ids[id]; known != "" {
			return known
		}
		return fmt.Sprintf("%x", id)
	}
	trace := func(id spans.TraceID) string {
		if _, known := traces[id]; !known {
			traces[id] = len(traces)
		}
		return fmt.Sprintf("t%d", traces[id])
	}
	for i := range list {
		s := &list[i]
		line := fmt.Sprintf("%s %s %s %d-%d", trace(s.Trace), name(s.ID), s.Name,
			s.Start.Sub(began)/time.Second, s.End.Sub(began)/time.Second)
		for _, a := range s.Attributes {
			if a.Name == "gen_ai.agent.name" || a.Name == "interlock.outcome" {
				line += fmt.Sprint(" ", a.Value)
			}
		}
		if s.Parent != (spans.SpanID{}) {
			line += " in " + name(s.Parent)
		}
		for _, l := range s.Links {
			line += fmt.Sprintf(" %v %s/%s", l.Attributes[0].Value, trace(l.Trace), name(l.Span))
		}
		for _, e := range s.Events {
			line += " event " + e.Name
		}
		if s.Failed {
			line += " failed"
		}
		lines = append(lines, line)
	}
	return lines
}

func TestSpans(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		began := time.Now()
		scene(d)
		list := spansOf(d, began, time.Now())
		got := strings.Join(describeSpans(list, began), "\n")
		want := `t0 s0 hold acct 0-4 billing-7 released in b7ad6b7169203331
t1 s1 wait acct 1-4 support-2 granted blocked_by t0/s0
t1 s2 hold acct 4-5 support-2 released in s1 handed_on t0/s0
t2 s3 hold 5-7 left released
t3 s4 hold 5-6 right released
t4 s5 wait 5-6 left granted blocked_by t3/s4
t5 s6 wait 6-6 right deadlock blocked_by t2/s3 event deadlock failed
t4 s7 hold 6-7 left released in s5 handed_on t3/s4
t0 s8 attempt acct 8-10 worker-1 nack in s10 failed
t0 s9 attempt acct 11-13 worker-1 released in s10
t0 s10 task sums 7-13 boss done in c7ad6b7169203332
t0 s11 refused_fence acct 4-4 in s0 failed
t6 s12 stale_commit acct 13-13 late failed`
		if got != want {
			t.Errorf("the spans are\n%s\nwant\n%s", got, want)
		}

		// The same journal has the same spans, byte by byte.
		r := spans.Resource{Attributes: map[string]string{"service.name": "interlock"}, Version: "1"}
		once, err := r.Encode(list)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := r.Encode(spansOf(d, began, time.Now())); !bytes.Equal(once, again) {
			t.Error("a second export differs")
		}

		// Parts of the time have all of them, each once, and links lead to the same ids.
		var parts []spans.Span
		for from := began; from.Before(time.Now()); from = from.Add(700 * time.Millisecond) {
			parts = append(parts, spansOf(d, from, from.Add(700*time.Millisecond))...)
		}
		whole := map[spans.SpanID]*spans.Span{}
		for i := range list {
			whole[list[i].ID] = &list[i]
		}
		if len(parts) != len(list) || len(whole) != len(list) {
			t.Errorf("%d spans in parts, %d at once with %d ids", len(parts), len(list), len(whole))
		}
		for i := range parts {
			if s := &parts[i]; whole[s.ID] == nil || fmt.Sprint(*whole[s.ID]) != fmt.Sprint(*s) {
				t.Errorf("a part has %+v, the whole %+v", s, whole[s.ID])
			}
			for _, l := range parts[i].Links {
				if to := whole[l.Span]; to == nil || to.Trace != l.Trace {
					t.Errorf("a link of %s leads to no span: %+v", parts[i].Name, l)
				}
			}
		}
		secret := slices.IndexFunc(list, func(s spans.Span) bool { return strings.Contains(s.Name, "acct:") })
		if secret >= 0 {
			t.Errorf("a key is in the name %s", list[secret].Name)
		}
	})
}
