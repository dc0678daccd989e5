package server

import (
	"testing"
	"time"
)

// hasTTL checks that a lease was renewed just now, with this ttl.
func (r *reply) hasTTL(ms int64) *reply {
	r.Helper()
	if ttl, left := r.want(200).num("lease.ttl_ms"), r.num("lease.expires_in_ms"); ttl != ms || left != ms {
		r.Fatalf("%s: the ttl is %d ms and %d are left, want %d: %s", r.what, ttl, left, ms, r.raw)
	}
	return r
}

func TestRenewWithTTL(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		path := "/v1/leases/" + d.acquire("billing-7", "account:1") + "/renew"
		before := d.post(path, `{"ttl_ms":30000}`).hasTTL(30_000).str("at.index")
		index := d.post(path, `{"ttl_ms":600000,"progress":"1/2"}`).hasTTL(600_000).str("at.index")
		if index == before {
			t.Error("the change of the ttl is not in the journal")
		}
		pass(9 * time.Minute)
		for _, body := range []string{"", `{}`, `{"ttl_ms":0}`, `{"ttl_ms":600000}`} {
			d.post(path, body).hasTTL(600_000).is("at.index", index)
		}
		d.post(path, `{"ttl_ms":1000}`).hasTTL(1000)
		pass(time.Second)
		d.post(path, `{"ttl_ms":30000}`).want(409, "in_grace")
	})
}

// A lease of a session has at most the ttl of the session, and a heartbeat takes no ttl.
func TestRenewWithTTLInASession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		session := d.post("/v1/sessions", `{"agent":"a","ttl_ms":120000}`).want(200).str("session.id")
		got := d.post("/v1/leases", `{"session":"`+session+`","ttl_ms":10000,"claims":[{"key":"k"}]}`).want(200)
		path := "/v1/leases/" + got.str("lease.id") + "/renew"
		d.post(path, `{"ttl_ms":600000}`).hasTTL(120_000)
		d.post("/v1/sessions/"+session+"/heartbeat", `{"ttl_ms":600000}`).want(400, "invalid_request")
		d.pattern("k", `{"pattern":"k","max_ttl_ms":20000}`)
		d.post(path, `{"ttl_ms":600000}`).hasTTL(20_000)
	})
}

func TestRenewWithTTLIsChecked(t *testing.T) {
	d := newDoor(t)
	path := "/v1/leases/" + d.acquire("billing-7", "account:1") + "/renew"
	for body, code := range map[string]string{
		`{"ttl_ms":999}`: "invalid_ttl", `{"ttl_ms":86400001}`: "invalid_ttl", `{"ttl_ms":-1}`: "invalid_ttl",
		`{"ttl_ms":"1m"}`: "invalid_request", `{"ttl":60000}`: "invalid_request",
	} {
		d.post(path, body).want(400, code)
	}
	d.post(path, `{}`).hasTTL(30_000)
	part := d.post("/v1/leases", `{"agent":"a","claims":[{"key":"m","parts":2}]}`).want(200).str("lease.parts.0.lease")
	d.post("/v1/leases/"+part+"/renew", `{"ttl_ms":60000}`).want(400, "invalid_request").says(
		"detail", "renew the member's lease",
	)
}

// An Idempotency-Key makes the change of the ttl happen once; it counts for nothing else.
func TestRenewWithTTLAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		path := "/v1/leases/" + d.acquire("billing-7", "account:1") + "/renew"
		d.post(path, `{"ttl_ms":600000}`, "Idempotency-Key", "up").hasTTL(600_000)
		d.post(path, `{"ttl_ms":60000}`, "Idempotency-Key", "down").hasTTL(60_000)
		pass(time.Second)
		d.post(path, `{"ttl_ms":600000}`, "Idempotency-Key", "up").hasTTL(60_000)
		d.post(path, `{"ttl_ms":300000}`, "Idempotency-Key", "up").want(422, "request_id_reused")
		d.post(path, `{}`, "Idempotency-Key", "up").hasTTL(60_000)
		d.reopen()
		d.post(path, `{"ttl_ms":600000}`, "Idempotency-Key", "up").hasTTL(60_000)
	})
}
