package server

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// lines decodes JSON lines.
func lines(t *testing.T, text string) (list []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		list = append(list, v)
	}
	return list
}

func kinds(list []map[string]any) string {
	var names []string
	for _, v := range list {
		names = append(names, fmt.Sprint(v["event"]))
	}
	return strings.Join(names, " ")
}

func TestEventsTellTheStory(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		s := d.session("worker")
		first := d.post("/v1/leases", `{"session":"`+s+`","purpose":"audit","claims":[{"key":"k"}]}`).want(200)
		ticket := d.post(
			"/v1/leases", `{"agent":"next","on_conflict":"wait","claims":[{"key":"k"}]}`,
		).want(202).str("ticket.id")
		pass(2 * time.Second)
		d.post("/v1/leases/"+first.str("lease.id")+"/release", `{"outcome":"done","note":"all good"}`).want(200)
		d.get("/v1/tickets/" + ticket).want(200)
		pass(time.Hour)
		got := lines(t, d.get("/v1/events").want(200).raw)
		if story := kinds(got); story != "opened session_opened granted queued ended admitted claimed session_ended "+
			"grace ended" {
			t.Fatal(story)
		}
		ended := got[4]
		for name, want := range map[string]any{
			"agent": "worker", "fence": "1", "reason": "released", "outcome": "done", "note": "all good", "held_ms": 2000.0,
			"session_number": "1",
		} {
			if ended[name] != want {
				t.Errorf("%s is %v, want %v", name, ended[name], want)
			}
		}
		if got[5]["waited_ms"] != 2000.0 || got[5]["request"] != got[3]["request"] || got[9]["reason"] != "ttl" {
			t.Errorf("%v\n%v", got[5], got[9])
		}
	})
}

// All fields of an event are shown, but for secrets, those of snapshots only, and those that
// request ids need.
func TestEventsShowAllTheyHave(t *testing.T) {
	hidden := map[string]bool{
		"ID": true, "BaseID": true, "ByID": true, "Scope": true, "RequestID": true, "Seq": true, "Acked": true,
		"Fingerprint": true, "Answer": true,
		"Code": true, "Message": true, "Text": true, "Changed": true, "Arrived": true, "Writes": true, "Namespace": true,
		"Epoch": true, "Made": true,
		"KeyClass": true, "After": true, "Result": true,
	}
	kinds := map[string]record.Kind{
		"Op": record.Written, "PatternName": record.PatternSet, "QueueName": record.QueueSet, "SessionName": record.Written,
		"WebhookName": record.WebhookSet, "Due": record.TaskMoved, "Idle": record.Opened, "OtherShard": record.NamespaceMoved,
	}
	show := func(ev *record.Event) string {
		var j jsonOut
		writeEvent(&j, ev, 1, 1)
		return string(j.b)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[record.Event]()) {
		if !f.IsExported() || f.Anonymous {
			continue
		}
		ev := record.Event{Kind: record.Queued, Claims: []interlock.Claim{{Key: "k", Mode: interlock.Member, Count: 2}}}
		if kind, ok := kinds[f.Name]; ok {
			ev.Kind = kind
		}
		before := show(&ev)
		switch v := reflect.ValueOf(&ev).Elem().FieldByIndex(f.Index); v.Kind() {
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(int64(time.Second))
		case reflect.Uint8, reflect.Uint64:
			v.SetUint(2)
		case reflect.String:
			v.SetString("text")
		case reflect.Array:
			v.Index(0).SetUint(1)
		default:
			switch f.Name {
			case "Claims":
				ev.Claims = nil
			case "Cycle":
				ev.Cycle = fullConflict().Cycle
			case "Cause":
				ev.Cause = message.Append(nil, message.New(message.TaskGivenUp))
			case "Blob", "Text":
				continue // of patterns and settings, see tourOperators; of answers, see hidden
			default:
				t.Fatalf("what is %s?", f.Name)
			}
		}
		if shows := show(&ev) != before; shows == hidden[f.Name] {
			t.Errorf("%s: it is shown: %v", f.Name, shows)
		}
	}
}

// Nothing that would allow acting on another's lease is in the events, in the listings, in the
// metrics or in the log.
func TestSecretsStayWithTheirHolder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		session := d.session("worker")
		lease := d.post(
			"/v1/leases", `{"session":"`+session+`","claims":[{"key":"k"}]}`, "Idempotency-Key", "request-secret",
		).str("lease.id")
		ticket := d.post(
			"/v1/leases", `{"agent":"next","on_conflict":"wait","claims":[{"key":"k"}]}`, "Idempotency-Key", "request-secret",
		).str("ticket.id")
		effect := d.post("/v1/effects", `{"tool":"mail","target":"x"}`).want(200)
		d.put("/v1/queues/q", `{}`).want(200)
		d.post("/v1/tasks", `{"queue":"q","payload":1}`).want(202)
		work := d.post("/v1/queues/q/pull", ``).want(200).str("tasks.0.lease.id")
		var seen strings.Builder
		for _, path := range []string{
			"/v1/effects", "/v1/effects/" + effect.str("effect.action"), "/v1/events", "/v1/keys", "/v1/keys/k", "/v1/waits",
			"/v1/why?key=k", "/v1/why?agent=next", "/v1/hot", "/v1/tasks", "/metrics",
		} {
			seen.WriteString(d.get(path).want(200).raw)
		}
		seen.WriteString(d.post("/v1/leases", `{"claims":[{"key":"k"}]}`).want(409).raw)
		seen.WriteString(d.post("/v1/leases", `{"on_conflict":"skip","claims":[{"key":"k"}]}`).want(200).raw)
		for _, secret := range []string{
			lease[2:], ticket[2:], session[2:], work[2:], effect.str("effect.id")[2:], "request-secret",
		} {
			if len(secret) < 10 || strings.Contains(seen.String(), secret) {
				t.Errorf("%s can be seen by others", secret)
			}
		}
	})
}

func TestEventsGoOnWhereTheyStopped(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		for i := range 5 {
			d.acquire("a", fmt.Sprint("k", i))
		}
		finite := d.get("/v1/events?follow=false", "Accept", "text/event-stream").want(200)
		if kind := finite.header.Get("Content-Type"); kind != "text/event-stream" {
			t.Error(kind)
		}
		blocks := strings.Split(strings.TrimSuffix(finite.raw, "\n\n"), "\n\n")
		if len(blocks) != 6 {
			t.Fatalf("%d blocks in %q", len(blocks), finite.raw)
		}
		var last string
		for i, b := range blocks[:3] {
			rows := strings.Split(b, "\n")
			if len(rows) != 3 || !strings.HasPrefix(rows[0], "event: ") || !strings.HasPrefix(rows[1], "data: {") ||
				!strings.HasPrefix(rows[2], "id: ") {
				t.Fatalf("block %d is %q", i, b)
			}
			last = strings.TrimPrefix(rows[2], "id: ")
		}
		rest := d.get("/v1/events?follow=false", "Accept", "text/event-stream", "Last-Event-ID", last).raw
		if want := strings.Join(blocks[3:], "\n\n") + "\n\n"; rest != want {
			t.Errorf("after %s: %q, want %q", last, rest, want)
		}
		if got := kinds(lines(t, d.get("/v1/events?from="+last).raw)); got != "granted granted granted granted" {
			t.Errorf("from=%s: %s", last, got)
		}
		newest := d.server.shard.At().Index
		if got := d.get("/v1/events?from=" + (newest + 1).String()).want(200).raw; got != "" {
			t.Errorf("the future holds %q", got)
		}
		d.get("/v1/events?from="+(newest+2).String()).want(400, "future_version")
		d.get("/v1/events?follow=false", "Last-Event-ID", newest.String()).want(200)
		d.get("/v1/events", "Last-Event-ID", (newest+1).String()).want(400, "future_version")
		d.get("/v1/events", "Last-Event-ID", "18446744073709551615").want(400, "future_version")
		for _, bad := range []string{"?from=x", "?from=-1", "?from=01", "?follow=maybe", "?from=1&from=2"} {
			d.get("/v1/events"+bad).want(400, "invalid_request")
		}
		d.get("/v1/events", "Last-Event-ID", "x").want(400, "invalid_request")
	})
}

func TestEventsStayInTheirNamespace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		for _, ns := range []string{"acme", "globex"} {
			d.post("/v1/leases", `{"agent":"`+ns+`-agent","claims":[{"key":"k"}]}`, "Interlock-Namespace", ns).want(200)
		}
		got := d.get("/v1/events", "Interlock-Namespace", "acme").raw
		if !strings.Contains(got, "acme-agent") || strings.Contains(got, "globex") {
			t.Error(got)
		}
	})
}

// Events say that a document was written or an effect settled, and not what with.
func TestEventsShowNoBodies(t *testing.T) {
	for _, ev := range []record.Event{
		{Kind: record.Written, Op: uint8(interlock.Put), Blob: []byte("body-secret")},
		{Kind: record.EffectChanged, Blob: []byte("body-secret")},
		{Kind: record.EffectChanged, Op: uint8(interlock.EffectDone), Result: "body-secret", ID: [16]byte{0xab, 0xcd, 0xef}},
		{Kind: record.EffectChanged, Op: 0, Outcome: "not done", ID: [16]byte{0xab, 0xcd, 0xef}},
	} {
		var j jsonOut
		writeEvent(&j, &ev, 1, 1)
		if got := string(j.b); strings.Contains(got, "body-secret") || strings.Contains(got, "abcdef") {
			t.Errorf("%s", got)
		}
	}
}
