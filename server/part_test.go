package server

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Members of a shared-out key learn from their lease what they have, and what they
// must stop.
func TestParts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		s := d.session("ann")
		const claim = `"grace_ms":10000,"claims":[{"key":"jobs","parts":4}]`
		ann := d.post("/v1/leases", `{"session":"`+s+`",`+claim+`}`).want(200).is("lease.claims.0.mode", "member")
		if ann.num("lease.claims.0.parts") != 4 || len(ann.at("lease.parts").([]any)) != 4 ||
			ann.at("lease.parts.0.stop") != false {
			t.Error(ann.raw)
		}
		d.post("/v1/leases", `{"agent":"x","claims":[{"key":"jobs","parts":3}]}`).want(409, "mismatch")
		d.post("/v1/leases", `{"agent":"x","claims":[{"key":"jobs","parts":4},{"key":"k"}]}`).want(400, "invalid_request")

		// Another one comes: half of the parts are to go to it.
		ben := d.post("/v1/leases", `{"agent":"ben","divide":"hash",`+claim+`}`).want(200).str("lease.id")
		beat := d.post("/v1/sessions/"+s+"/heartbeat", "").want(200).is("losses.0.lease.state", "grace").is(
			"losses.0.lease.ended_by", "preempted",
		)
		beat.says("losses.0.lease.claims.0.key", "jobs/").is("losses.0.lease.yield.agent", "ben").says(
			"losses.0.detail", `was preempted`, `"ben"`,
		)
		mine := d.get("/v1/leases/"+ann.str("lease.id")).want(200).is("advice.action", "stop")
		mine.says(
			"advice.message", "another member will get jobs/",
			"and 1 more: stop work on it and release its lease within 10 s",
		)
		var kept, stopped []string
		for i := range 4 {
			part := fmt.Sprint("lease.parts.", i)
			if mine.at(part+".stop") == true {
				stopped = append(stopped, mine.str(part+".lease"))
				if mine.num(part+".left_ms") != 10_000 {
					t.Error(mine.raw)
				}
			} else {
				kept = append(kept, mine.str(part+".lease"))
			}
		}
		if len(kept) != 2 || len(stopped) != 2 {
			t.Fatal(mine.raw)
		}

		// A released part goes over at once, the rest after its grace, each under a fence of
		// its own, which the late writer's is not.
		d.post("/v1/leases/"+stopped[0]+"/release", `{"note":"at 17"}`).want(200)
		got := d.post("/v1/leases/"+ben+"/renew", "").want(200)
		if len(got.at("lease.parts").([]any)) != 1 {
			t.Error(got.raw)
		}
		pass(10 * time.Second)
		got = d.post("/v1/leases/"+ben+"/renew", "").want(200)
		if len(got.at("lease.parts").([]any)) != 2 {
			t.Error(got.raw)
		}
		d.post(
			"/v1/fences/check", `{"key":"`+got.str("lease.parts.0.key")+`/item","fence":"`+got.str("lease.parts.0.fence")+`"}`,
		).want(200)
		d.post(
			"/v1/fences/check", `{"key":"`+got.str("lease.parts.0.key")+`/item","fence":"`+ann.str("lease.parts.0.fence")+`"}`,
		).want(409, "fenced")
		d.get("/v1/leases/"+stopped[1]).want(410).is("ended_by", "preempted")

		// A member that goes leaves its parts to the others.
		d.delete("/v1/sessions/" + s).want(200)
		if got = d.post("/v1/leases/"+ben+"/renew", "").want(200); len(got.at("lease.parts").([]any)) != 4 {
			t.Error(got.raw)
		}
		events := d.get("/v1/events").raw
		for _, want := range []string{`"part":true`, `"divide":"hash"`, `"base":"`} {
			if !strings.Contains(events, want) {
				t.Errorf("the events lack %s", want)
			}
		}
		for _, secret := range []string{kept[0], stopped[0], ben} {
			if strings.Contains(events, secret[2:]) || strings.Contains(d.get("/v1/keys/jobs").raw, secret[2:]) {
				t.Error("the id of a lease is shown")
			}
		}
	})
}
