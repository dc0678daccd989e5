package server

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
)

// With a grant come the documents at its keys, also when it comes later, as of the moment
// of the grant.
func TestDocumentsWithAGrant(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.post("/v1/commits", `{"agent":"ann\u001b[31m","note":"why","writes":[{"key":"k","put":{"n":1}}]}`).want(200)
		ask := `{"agent":"bob","claims":[{"key":"k"},{"key":"new"}],"documents":true,"on_conflict":"wait","wait_ms":0}`
		first := d.post("/v1/leases", ask).want(200).is("as_of", "1").is("documents.0.agent", "ann [31m").is(
			"documents.0.note", "why",
		).is("documents.1.version", "0")
		if first.num("documents.0.value.n") != 1 || first.at("documents.1.absent") != true ||
			first.at("documents_more") != nil {
			t.Error(first.raw)
		}
		ticket := d.post("/v1/leases", ask).want(202).str("ticket.id")
		plain := d.post("/v1/leases", strings.Replace(ask, `"documents":true,`, "", 1)).want(202).str("ticket.id")
		d.post(
			"/v1/commits",
			`{"agent":"cleo","leases":["`+first.str("lease.id")+
				`"],"writes":[{"key":"k","put":{"n":2}},{"key":"new","text":""}]}`,
		).want(200)
		d.post("/v1/leases/"+first.str("lease.id")+"/release", "{}").want(200)
		late := d.get("/v1/tickets/"+ticket).want(200).is("as_of", "2").is("documents.0.version", "2").is(
			"documents.0.earlier.0.note", "why",
		).is("documents.1.text", "")
		if late.num("documents.0.value.n") != 2 || late.at("documents.1.truncated") != nil {
			t.Error(late.raw)
		}
		d.get("/v1/leases/"+late.str("lease.id")).want(200).is("documents.0.version", "2")
		if renewed := d.post("/v1/leases/"+late.str("lease.id")+"/renew", "{}").want(200); renewed.at("documents") != nil {
			t.Error(renewed.raw)
		}
		d.post("/v1/leases/"+late.str("lease.id")+"/release", "{}").want(200)
		if got := d.get("/v1/tickets/" + plain).want(200); got.at("documents") != nil || got.at("as_of") != nil {
			t.Error(got.raw)
		}

		d.send(d.request(
			"PUT", "/v1/state/big", strings.Repeat("x", interlock.MaxGrantBytes+1), "Content-Type", plainText,
		)).want(200)
		big := d.post("/v1/leases", `{"agent":"bob","claims":[{"key":"big"}],"documents":true}`).want(200).says(
			"warnings.0", "GET /v1/state/{key}", "big",
		)
		if big.at("documents.0.truncated") != true || big.at("documents.0.text") != nil ||
			big.num("documents.0.size") != interlock.MaxGrantBytes+1 {
			t.Error(big.raw)
		}
		d.post("/v1/leases", `{"agent":"bob","claims":[{"key":"k"}],"documents":1}`).want(400, "invalid_request")
	})
}
