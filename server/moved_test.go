package server

import "testing"

// A waiter for a lease learns what was committed meanwhile, and a caller that names the version it
// read, what was committed since.
func TestGrantsTellWhatMoved(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.commitDoc("account:1", `{"balance":100}`)
		lease := d.acquire("ann", "account:1")
		waiting := d.start(d.request("POST", "/v1/leases", `{"agent":"ben","wait_ms":20000,"claims":[{"key":"account:1"}]}`))
		pass(1)
		d.post(
			"/v1/commits",
			`{"agent":"ann","note":"fee","leases":["`+lease+`"],"writes":[{"key":"account:1","merge":{"balance":65}}]}`,
		).want(200)
		d.post("/v1/leases/"+lease+"/release", "").want(200)
		got := (<-waiting).want(200).is("packet.stale.0.key", "account:1").is("packet.stale.0.now.note", "fee").is(
			"packet.stale.0.diff.patch.0.path", "/balance",
		)
		got.is("advice.action", "re_read").says("advice.message", "account:1").says("packet.message", "fee")
		d.post("/v1/leases/"+got.str("lease.id")+"/release", "").want(200)

		d.post("/v1/leases", `{"claims":[{"key":"account:1"}],"as_of":"9"}`).want(400, "future_version")
		d.post("/v1/leases", `{"claims":[{"key":"account:1"}],"as_of":1}`).want(400, "invalid_request")
		late := d.post("/v1/leases", `{"agent":"cat","claims":[{"key":"account:1"}],"as_of":"1"}`).want(200).is(
			"packet.stale.0.now.version", "2",
		)
		d.post("/v1/leases/"+late.str("lease.id")+"/release", "").want(200)
		if now := d.post(
			"/v1/leases", `{"agent":"cat","claims":[{"key":"account:1"}],"as_of":"2"}`,
		).want(200); now.at("packet") != nil {
			t.Error(now.raw)
		}
		d.get("/v1/keys/account:1").want(200).is("version", "2")
	})
}
