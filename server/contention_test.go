package server

import "testing"

// A caller that conflicts often is advised to lease, where it is refused and in the listing.
func TestContention(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.send(d.request("PUT", "/v1/patterns/accounts", `{"pattern":"account:{id}"}`)).want(200)
		d.commitDoc("account:1", "0")
		const stale = `{"agent":"ben","reads":[{"key":"account:1","absent":true}],"writes":[{"key":"account:1","put":1}]}`
		version := d.post(
			"/v1/commits", `{"reads":[{"key":"account:1","present":true}],"writes":[{"key":"account:1","put":0}]}`,
		).want(200).str("version")
		for range 10 {
			version = d.post(
				"/v1/commits", `{"reads":[{"key":"account:1","version":"`+version+`"}],"writes":[{"key":"account:1","put":0}]}`,
			).want(200).str("version")
		}
		for range 9 {
			d.post("/v1/commits", stale).want(412)
		}
		d.post("/v1/commits", stale).want(412).says(
			"advice.message", "10 of 20 commits by version to accounts keys", "acquire the key before",
		)
		d.post("/v1/commits", `{"agent":"ben","as_of":"`+version+`","writes":[{"key":"account:1","put":1}]}`).want(200).says(
			"advice.message", "10 of 21",
		)
		got := d.get("/v1/contention").want(200).is("patterns.0.pattern", "accounts").is("patterns.0.advice.action", "wait")
		if got.num("patterns.0.commits") != 11 || got.num("patterns.0.conflicts") != 10 || got.num("patterns.0.retries") != 1 {
			t.Error(got.raw)
		}
		d.get("/v1/contention", "Interlock-Namespace", "other").want(200)
	})
}
