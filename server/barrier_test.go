package server

import (
	"testing"
	"time"
)

func TestBarrier(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		agents := []string{"ann", "ben", "cleo"}
		waiting := map[string]<-chan *reply{}
		sessions := map[string]string{}
		for i, agent := range agents {
			sessions[agent] = d.session(agent)
			waiting[agent] = d.start(d.request(
				"POST", "/v1/leases", `{"session":"`+sessions[agent]+`","wait_ms":50000,"claims":[{"key":"phase","parties":3}]}`,
			))
			pass(time.Second)
			switch i {
			case 0:
				why := d.get("/v1/why?key=phase").want(200).says(
					"text", "phase is a barrier of 3 parties; 1 has arrived (ann), 2 are missing.",
				)
				why.says("advice.message", "start the missing parties")
				d.post("/v1/leases", `{"claims":[{"key":"phase","parties":2}]}`).want(409, "mismatch").says(
					"detail", "barrier of 3",
				)
			case 1:
				view := d.get("/v1/keys/phase").want(200).is("waiters.1.agent", "ben").is("waiters.1.mode", "barrier")
				view.num("waiters.1.parties")
			}
		}
		leases := map[string]string{}
		for _, agent := range agents {
			got := (<-waiting[agent]).want(200).is("lease.claims.0.mode", "barrier")
			if got.num("lease.generation") != 1 || got.num("lease.claims.0.parties") != 3 {
				t.Error(got.raw)
			}
			leases[agent] = got.str("lease.id")
		}

		// The next phase: all come again.
		arrive := func(agent, body string) *reply { return d.post("/v1/leases/"+leases[agent]+"/arrive", body) }
		queued := arrive("ann", `{}`).want(202).is("conflict_kind", "barrier").is("holders.0.agent", "ben")
		queued.says(
			"advice.message",
			"phase is a barrier that waits for ben and 1 more; you are 1st of 1 in line, expected wait unknown: stay in line",
		)
		queued.is("advice.action", "wait")
		arrive("ben", `{}`).want(202)
		view := d.get("/v1/keys/phase").want(200)
		if view.num("generation") != 1 || view.at("broken") != nil {
			t.Error(view.raw)
		}
		why := d.get("/v1/why?key=phase").want(200)
		why.says(
			"text",
			"phase is a barrier of 3 parties that has opened 1 time; 2 have arrived again (ann, ben), still missing: cleo.",
		).says("advice.message", "waits for cleo")
		if got := arrive("cleo", `{"wait_ms":1000}`).want(200); got.num("lease.generation") != 2 {
			t.Error(got.raw)
		}
		if got := d.get("/v1/tickets/" + queued.str("ticket.id")).want(200); got.num("lease.generation") != 2 {
			t.Error(got.raw)
		}

		// A party leaves: its waiters learn that at once, and the set is done for.
		late := d.start(d.request("POST", "/v1/leases/"+leases["ann"]+"/arrive", `{"wait_ms":50000}`))
		pass(time.Second)
		d.delete("/v1/sessions/" + sessions["cleo"]).want(200)
		broken := (<-late).want(409, "barrier_broken").is("advice.action", "retry")
		broken.says("detail", `has lost a party, "cleo" (session_closed)`)
		if broken.at("retryable") != true || broken.header.Get("Retry-After") == "" {
			t.Error(broken.raw)
		}
		arrive("ben", `{}`).want(409, "barrier_broken")
		if view := d.get("/v1/keys/phase").want(200); view.at("broken") != true {
			t.Error(view.raw)
		}
		why = d.get("/v1/why?key=phase").want(200).says(
			"text",
			"that has opened 2 times and is broken: it has lost a party and cannot open again; remaining parties: ann, ben.",
		)
		why.says("advice.message", "it cannot open again: ann, ben must release")
		plain := d.acquire("solo", "other")
		d.post("/v1/leases/"+plain+"/arrive", "").want(400, "invalid_request").says("detail", "does not belong to a party")
	})
}

// A place that was offered and not taken up yet is no arrival for the next phase.
func TestBarrierOffered(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		for _, agent := range []string{"ann", "ben", "cleo"} {
			body := `{"session":"` + d.session(agent) +
				`","wait_ms":0,"on_conflict":"wait","claims":[{"key":"phase","parties":3}]}`
			d.post("/v1/leases", body)
			pass(time.Second)
		}
		d.get("/v1/keys/phase").want(200).is("waiters.0.agent", "ann")
		d.get("/v1/why?key=phase").want(200).says("text", "opened 1 time; none of its parties has arrived again: ann, "+
			"ben, cleo.")
	})
}
