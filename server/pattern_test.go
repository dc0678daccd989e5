package server

import (
	"strings"
	"testing"
	"time"
)

// put sends a body to a path.
func (d *door) put(path, body string, headers ...string) *reply {
	d.Helper()
	return d.send(d.request("PUT", path, body, headers...))
}

// pattern registers a pattern.
func (d *door) pattern(name, body string) {
	d.Helper()
	d.put("/v1/patterns/"+name, body).want(200)
}

func TestKeysThatFitNoPattern(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.pattern("account", `{"pattern":"account:{id}","aliases":["acct-{id}"]}`)
		d.acquire("a", "account:12345")
		d.acquire("a", "open:1")
		for _, closed := range []bool{false, true} {
			if got := d.get("/v1/namespace").want(200).at("closed"); got != closed {
				t.Errorf("closed is %v, want %v", got, closed)
			}
			d.put("/v1/namespace", `{"closed":true}`).want(200)
		}
		got := d.post("/v1/leases", `{"claims":[{"key":"accounts/12345"}]}`).want(400, "unmatched_key")
		got.is("nearest.0", "account:12345").is("nearest.1", "account:{id}").is("key", "accounts/12345")
		got.says("advice.message", `spell the key like one of account:12345, "account:{id}"`)
		if got.header.Get("Retry-After") != "" || got.at("retryable") != false {
			t.Error("a spelling does not become right by waiting")
		}
		// Another spelling of the same thing is the same thing.
		held := d.post("/v1/leases", `{"claims":[{"key":"acct-12345"}]}`).want(409, "held").is("key", "account:12345")
		held.is("holders.0.key", "account:12345")
		d.get("/v1/keys/acct-12345").want(200).is("key", "account:12345").is("pattern", "account").is("state", "held")
		d.get("/v1/why?key=acct-12345").want(200).says("text", "account:12345 is held by a")
		// Operators may let other keys in.
		d.put("/v1/namespace", `{"closed":false}`).want(200)
		d.acquire("a", "accounts/12345")
	})
}

func TestBadPatterns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		for body, words := range map[string]string{
			`{"pattern":"a:{id}","rate":60}`: "a rate needs per",

			`{"pattern":"a:{id"}`:                                                                                  `shape "a:{id"`,
			`{"pattern":"a:{id}","burst":3}`:                                                                       "need a rate",
			`{"pattern":"a:{id}","ttl_ms":999}`:                                                                    "ttl",
			`{"pattern":"a:{id}","ttl_ms":20000,"max_ttl_ms":10000}`:                                               "ttl 20s is above max_ttl 10s",
			`{"pattern":"a:{id}","members":["b:1"]}`:                                                               "does not match the shape",
			`{"pattern":"a:{id}","groups":[{"name":"x","min":1}]}`:                                                 "groups divide a capacity",
			`{"pattern":"a:{id}","capacity":4,"groups":[{"name":"x","min":3,"max":2}]}`:                            "min <= max <= capacity",
			`{"pattern":"a:{id}","capacity":4,"groups":[{"name":"x","min":3},{"name":"y","min":2}]}`:               "add up to 5",
			`{"pattern":"a:{id}","capacity":4,"groups":[{"name":"x","min":1},{"name":"x","max":2}]}`:               "occurs twice",
			`{"pattern":"` + strings.Repeat("a", 600) + `"}`:                                                       "shape",
			`{"pattern":"a:{id}","aliases":[` + strings.TrimSuffix(strings.Repeat(`"b:{id}",`, 16), ",") + `,""]}`: "",
		} {
			got := d.put("/v1/patterns/p", body)
			if got.status != 400 ||
				words != "" && (got.str("code") != "invalid_pattern" || !strings.Contains(got.str("detail"), words)) {
				t.Errorf("%s: %d %s, want invalid_pattern and %q", body, got.status, got.raw, words)
			}
		}
		d.put("/v1/patterns/a%2Fb", `{"pattern":"a"}`).want(400, "invalid_pattern").says("detail", "no slash")
		d.put("/v1/patterns/%FF", `{"pattern":"a"}`).want(400, "invalid_pattern")
		d.send(d.request("GET", "/v1/patterns/none", "")).want(404, "unknown_pattern")
		if list := d.get("/v1/patterns").at("patterns").([]any); len(list) != 0 {
			t.Error("a bad pattern was registered", list)
		}
	})
}

func TestWhoMayClaimWhat(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		writer, one := newSecret(t, "writer", "acme")
		reader, two := newSecret(t, "reader", "acme")
		boss, three := newSecret(t, "boss", "acme")
		c := credentialsFile(t, one, two, three+" operator")
		d.reopen(func(cfg *Config) { cfg.Credentials = c })
		as := func(secret string) []string { return []string{"Authorization", "Bearer " + secret} }
		const body = `{"pattern":"account:{id}","allow":[{"principal":"writer"},{"principal":"*","modes":["shared","intent-shared"]}]}`

		// Patterns and settings bind all clients, so not all of them may change them.
		for _, secret := range []string{writer, reader} {
			for _, r := range [][3]string{
				{"PUT", "/v1/patterns/account", body},
				{"DELETE", "/v1/patterns/account", ""},
				{"PUT", "/v1/namespace", `{"closed":false}`},
			} {
				d.send(d.request(r[0], r[1], r[2], as(secret)...)).want(403, "forbidden").says(
					"detail", "needs the role operator",
				).is("advice.action", "ask_human")
			}
			d.get("/v1/patterns", as(secret)...).want(200)
			d.get("/v1/namespace", as(secret)...).want(200)
		}
		d.put("/v1/patterns/account", body, as(boss)...).want(200)

		const exclusive, shared = `{"claims":[{"key":"account:1"}]}`, `{"claims":[{"key":"account:1","mode":"shared"}]}`
		d.post("/v1/leases", exclusive, as(reader)...).want(403, "mode_forbidden").is("advice.action", "ask_human").is(
			"key", "account:1",
		)
		lease := d.post("/v1/leases", exclusive, as(writer)...).want(200).str("lease.id")
		d.post("/v1/leases/"+lease+"/release", "", as(writer)...).want(200)
		d.post("/v1/leases", shared, as(reader)...).want(200)
		if events := d.get("/v1/events", as(boss)...).raw; !strings.Contains(events, `"actor":"boss","pattern":"account"`) {
			t.Error("nobody can tell who set the pattern", events)
		}
		if _, err := parseCredentials([]byte(one + " admin")); err == nil {
			t.Error("a fourth word other than operator was taken")
		}
	})
}

func TestNearMissesAreWarnedOf(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.put("/v1/namespace", `{"near_misses":true}`).want(200)
		if got := d.post("/v1/leases", `{"claims":[{"key":"account:123"}]}`).want(200); got.at("warnings") != nil {
			t.Error(got.raw)
		}
		d.post("/v1/leases", `{"claims":[{"key":"Account-0123"}]}`).want(200).says(
			"warnings.0", "Account-0123 is spelled almost like account:123",
		)
		d.post("/v1/leases", `{"on_conflict":"wait","claims":[{"key":"accounts/123"},{"key":"account:123"}]}`).want(202).says(
			"warnings.0", "accounts/123 is spelled almost like",
		)
	})
}

// The times of a pattern are defaults for a request's times, and bound them.
func TestPatternTimes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.pattern(
			"job",
			`{"pattern":"job:{id}","ttl_ms":10000,"max_ttl_ms":20000,"grace_ms":1000,"max_hold_ms":60000,"stall_ms":15000,"lock_delay_ms":2000}`,
		)
		got := d.post("/v1/leases", `{"claims":[{"key":"job:1"}]}`).want(200)
		for name, want := range map[string]int64{
			"lease.ttl_ms": 10_000, "lease.grace_ms": 1000, "lease.max_hold_in_ms": 60_000, "lease.stall_in_ms": 15_000,
			"lease.lock_delay_ms": 2000,
		} {
			if n := got.num(name); n != want {
				t.Errorf("%s is %d, want %d", name, n, want)
			}
		}
		if n := d.post("/v1/leases", `{"ttl_ms":3600000,"claims":[{"key":"job:2"}]}`).want(200).num(
			"lease.ttl_ms",
		); n != 20_000 {
			t.Errorf("ttl_ms is %d", n)
		}
	})
}

func TestAnyOfAPool(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.post("/v1/leases", `{"any_prefix":"gpu:"}`).want(400, "unmatched_key").says(
			"advice.message", "ask an operator to set one",
		)
		d.pattern("gpu", `{"pattern":"gpu:{n:int}","members":["gpu:{0..1}"]}`)
		d.post("/v1/leases", `{"any_prefix":"tpu:"}`).want(400, "unmatched_key").is("nearest.0", "gpu:{0..1}").says(
			"advice.message", `like one of "gpu:{0..1}"`,
		)
		first := d.post("/v1/leases", `{"any_prefix":"gpu:"}`).want(200).is("lease.claims.0.key", "gpu:0")
		d.post("/v1/leases", `{"any":true,"claims":[{"key":"gpu:0"},{"key":"gpu:1"}]}`).want(200).is(
			"lease.claims.0.key", "gpu:1",
		)
		d.post("/v1/leases", `{"any_prefix":"gpu:"}`).want(409, "held")
		waiting := d.start(d.request("POST", "/v1/leases", `{"any_prefix":"gpu:","wait_ms":20000}`))
		pass(time.Second)
		d.post("/v1/leases/"+first.str("lease.id")+"/release", "").want(200)
		got := (<-waiting).want(200).is("lease.claims.0.key", "gpu:0")
		if claims := got.at("lease.claims").([]any); len(claims) != 1 {
			t.Errorf("it got %v", claims)
		}
		if events := d.get("/v1/events").raw; !strings.Contains(events, `"any":true`) {
			t.Error(events)
		}
		d.post("/v1/leases", `{"any":true,"claims":[{"key":"gpu:0"}]}`).want(409, "held")
	})
}
