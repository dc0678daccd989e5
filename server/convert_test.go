package server

import (
	"testing"
	"time"
)

func TestConvert(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		s := d.session("reader")
		const shared = `"claims":[{"key":"doc:1","mode":"shared"}]`
		lease := d.post("/v1/leases", `{"session":"`+s+`",`+shared+`}`).want(200).str("lease.id")
		other := d.post("/v1/leases", `{"agent":"other",`+shared+`}`).want(200).str("lease.id")
		path := "/v1/leases/" + lease + "/convert"

		// An upgrade while another lease reads.
		d.post(path, `{"claims":[{"key":"doc:1"}]}`).want(409, "held").is("holders.0.agent", "other")
		d.post("/v1/leases", `{"agent":"newcomer","on_conflict":"wait","claims":[{"key":"doc:1"}]}`).want(202)
		waiting := d.start(d.request("POST", path, `{"claims":[{"key":"doc:1"}],"wait_ms":20000}`))
		pass(time.Second)
		d.post("/v1/leases/"+other+"/release", "").want(200)
		(<-waiting).want(200).is("lease.id", lease).is("lease.claims.0.mode", "exclusive").is("lease.fence", "3")

		// Back again, and another key to it.
		got := d.post(
			path, `{"claims":[{"key":"doc:2"},{"key":"doc:1","mode":"shared"}]}`, "Idempotency-Key", "one",
		).want(200)
		again := d.post(
			path, `{"claims":[{"key":"doc:2"},{"key":"doc:1","mode":"shared"}]}`, "Idempotency-Key", "one",
		).want(200)
		again.is("lease.fence", got.str("lease.fence"))
		d.post("/v1/fences/check", `{"key":"doc:2","fence":"`+got.str("lease.fence")+`"}`).want(200)
		d.post("/v1/fences/check", `{"key":"doc:1","fence":"3"}`).want(409, "fenced")

		// It is ahead of an earlier waiter that is new to the key.
		d.post(path, `{"claims":[{"key":"doc:1"}],"on_conflict":"wait"}`).want(200)
		d.post(path, `{"claims":[{"key":"doc:1","parties":2}]}`).want(400)
		d.post(path, `{"claims":[]}`).want(400, "too_many_claims")
		d.post("/v1/leases/"+other+"/convert", `{"claims":[{"key":"doc:1"}]}`).want(410, "released")
	})
}

// A caller that hangs up finds its conversion again by its lease.
func TestConversionOutlivesItsCall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		lease := d.post("/v1/leases", `{"ttl_ms":600000,"claims":[{"key":"k","mode":"shared"}]}`).want(200).str("lease.id")
		other := d.post("/v1/leases", `{"ttl_ms":600000,"claims":[{"key":"k","mode":"shared"}]}`).want(200).str("lease.id")
		first := d.post("/v1/leases/"+lease+"/convert", `{"claims":[{"key":"k"}],"wait_ms":1000}`).want(202)
		second := d.post("/v1/leases/"+lease+"/convert", `{"claims":[{"key":"k"}],"wait_ms":1000}`).want(202)
		second.is("ticket.id", first.str("ticket.id"))
		polling := d.start(d.request("GET", "/v1/tickets/"+first.str("ticket.id")+"?wait_ms=20000", ""))
		pass(time.Second)
		d.post("/v1/leases/"+other+"/release", "").want(200)
		(<-polling).want(200).is("lease.id", lease).is("lease.claims.0.mode", "exclusive")
	})
}

// Two readers that both want to write: the second gets the error at once.
func TestTwoUpgrades(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		var leases [2]string
		for i, agent := range []string{"one", "two"} {
			leases[i] = d.post(
				"/v1/leases", `{"session":"`+d.session(agent)+`","claims":[{"key":"k","mode":"shared"}]}`,
			).want(200).str("lease.id")
		}
		d.post("/v1/leases/"+leases[0]+"/convert", `{"claims":[{"key":"k"}],"on_conflict":"wait"}`).want(202)
		start := time.Now()
		d.post("/v1/leases/"+leases[1]+"/convert", `{"claims":[{"key":"k"}],"wait_ms":20000}`).want(409, "deadlock").says(
			"detail", "two (you) waits for k held by one",
		)
		if took := time.Since(start); took != 0 {
			t.Errorf("told after %v", took)
		}
	})
}
