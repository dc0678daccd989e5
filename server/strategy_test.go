package server

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

func TestTheBetterStrategyIsAdvised(t *testing.T) {
	for _, c := range []struct {
		name   string
		counts interlock.Contention
		action interlock.Action
		words  string
	}{
		{"nothing happened", interlock.Contention{}, "", ""},
		{"too few to tell", interlock.Contention{Commits: 1, Conflicts: 18}, "", ""},
		{"one in four", interlock.Contention{Pattern: "account", Commits: 15, Conflicts: 5}, interlock.ActWait, "5 of 20 commits by version to account keys were refused"},
		{"one in five", interlock.Contention{Commits: 16, Conflicts: 4}, "", ""},
		{"no wait at all", interlock.Contention{Leased: 20, Leases: 20}, interlock.ActRetry, "0 of 20 leases of such keys were waited for"},
		{"one wait in twenty", interlock.Contention{Pattern: "a b", Leased: 20, Leases: 20, Waited: 1}, interlock.ActRetry, `"a b" keys`},
		{"two waits in twenty", interlock.Contention{Leased: 20, Leases: 20, Waited: 2}, "", ""},
		{"leases that guard no documents", interlock.Contention{Leased: 19, Leases: 1000}, "", ""},
		{"leases that the pattern demands", interlock.Contention{Leased: 20, Leases: 20, Write: interlock.WriteLease}, "", ""},
		{"leases keep apart who would meet", interlock.Contention{Commits: 3, Conflicts: 1, Leased: 100, Leases: 100}, "", ""},
	} {
		got := strategyAdvice(&c.counts)
		if got.Action != c.action || !strings.Contains(got.Message, c.words) {
			t.Errorf("%s: %+v", c.name, got)
		}
		refused := adviceFor(&engine.Effect{Outcome: engine.Refused, Code: interlock.CodeStale, Contention: &c.counts})
		if refused.Action != interlock.ActReRead || !strings.HasSuffix(refused.Message, got.Message) {
			t.Errorf("%s: who is refused is told %+v", c.name, refused)
		}
	}
}

// A caller that conflicts often is advised to lease, where it is refused and in the listing.
func TestContention(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.send(d.request("PUT", "/v1/patterns/accounts", `{"pattern":"account:{id}"}`)).want(200)
		d.commitDoc("account:1", "0")
		const stale = `{"agent":"ben","reads":[{"key":"account:1","absent":true}],"writes":[{"key":"account:1","put":1}]}`
		version := d.post("/v1/commits", `{"reads":[{"key":"account:1","present":true}],"writes":[{"key":"account:1","put":0}]}`).want(200).str("version")
		for range 10 {
			version = d.post("/v1/commits", `{"reads":[{"key":"account:1","version":"`+version+`"}],"writes":[{"key":"account:1","put":0}]}`).want(200).str("version")
		}
		for range 9 {
			d.post("/v1/commits", stale).want(412)
		}
		d.post("/v1/commits", stale).want(412).says("advice.message", "account:1 changed", "10 of 20 commits by version to accounts keys", "acquire the key before")
		d.post("/v1/commits", `{"agent":"ben","as_of":"`+version+`","writes":[{"key":"account:1","put":1}]}`).want(200).says("advice.message", "10 of 21")
		got := d.get("/v1/contention").want(200).is("patterns.0.pattern", "accounts").is("patterns.0.advice.action", "wait")
		if got.num("patterns.0.commits") != 11 || got.num("patterns.0.conflicts") != 10 || got.num("patterns.0.retries") != 1 {
			t.Error(got.raw)
		}
		d.get("/v1/contention", "Interlock-Namespace", "other").want(200)
	})
}
