package server

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/signed"
)

// tourStatements sees to it that everything in openapi.json about signed fences is seen.
func tourStatements(d *door) {
	lease := d.post("/v1/leases", `{"agent":"signer","claims":[{"key":"signed:1"}]}`).want(200)
	id := lease.str("lease.id")
	path := "/v1/leases/" + id + "/statement"
	statement := d.post(path, `{"ttl_ms":1000}`).want(200)
	check := func(key, text string) *reply {
		return d.post("/v1/fences/check", `{"key":"`+key+`","statement":"`+text+`"}`)
	}
	text := statement.str("statement")
	check("signed:1", text).want(200).is("outcome", "valid")
	check("signed:1/below", text).want(200)
	check("signed:2", text).want(403, "foreign_fence")
	check("signed:1", text+"A").want(401, "invalid_statement")
	d.get("/v1/fences/keys").want(200)
	d.post("/v1/fences/keys/rotate", `{"key":"x"}`).want(400, "invalid_request").is(
		"detail", `unknown field "key": the body has no fields`,
	)
	d.post("/v1/fences/keys/rotate", `{}`).want(200).is("outcome", "rotated")
	check("signed:1", text).want(200)

	d.post("/v1/leases/"+id+"/park", `{}`).want(200)
	d.post(path, ``).want(409, "parked")
	d.post("/v1/leases/"+id+"/resume", `{}`).want(200)
	d.post("/v1/leases/"+id+"/release", `{}`).want(200)
	d.post(path, ``).want(410, "released")
	check("signed:1", text).want(409, "fenced")
	d.post("/v1/leases/l_00000000000000000000000000000001/statement", ``).want(404, "unknown_lease")

	whole := d.server.fences
	defer func() { d.server.fences = whole }()
	for d.post("/v1/fences/keys/rotate", `{}`).status == 200 {
	}
	d.post("/v1/fences/keys/rotate", `{}`).want(429, "quota_exceeded")
	dir := d.TempDir()
	lost, err := signed.OpenRing(signed.File(filepath.Join(dir, "keys")), false)
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		d.Fatal(err)
	}
	d.server.fences = lost
	d.post("/v1/fences/keys/rotate", `{}`).want(500, "internal")
}

// A statement can be verified with the key set alone, and holds for as long as was asked, but never
// for longer than the lease has left.
func TestStatement(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		session := d.session("billing-7")
		lease := d.post(
			"/v1/leases",
			`{"session":"`+session+
				`","flow":"main","ttl_ms":20000,"grace_ms":5000,"claims":[{"key":"account:1"},{"key":"ledger","mode":"shared"}]}`,
		).want(200)
		path := "/v1/leases/" + lease.str("lease.id") + "/statement"
		keys := d.get("/v1/fences/keys").want(200)
		if cache := keys.header.Get("Cache-Control"); cache != "public, max-age=60" {
			t.Errorf("the key set may be kept: %q", cache)
		}
		ks, err := signed.ParseKeySet([]byte(keys.raw))
		if err != nil {
			t.Fatal(err)
		}
		verify := func(text string) *signed.Statement {
			t.Helper()
			s, err := ks.Verify(text, time.Now(), signed.Want{Namespace: "default", Key: "account:1"})
			if err != nil {
				t.Fatal(err)
			}
			if s.Fence.String() != lease.str("lease.fence") || s.Holder.Agent != "billing-7" || s.Holder.Flow != "main" ||
				s.Holder.Session != lease.str("lease.holder.session") || len(s.Claims) != 2 {
				t.Errorf("%+v is not about %s", s, lease.raw)
			}
			return s
		}
		for _, c := range []struct {
			after time.Duration
			body  string
			want  time.Duration
		}{
			{0, `{"ttl_ms":7000}`, 7 * time.Second},
			{0, ``, 20 * time.Second}, // 30 s are more than is left
			{0, `{"ttl_ms":300000}`, 20 * time.Second},
			{15 * time.Second, `{"ttl_ms":7000}`, 5 * time.Second},
			{5 * time.Second, ``, 5 * time.Second}, // its grace
			{4500 * time.Millisecond, ``, 500 * time.Millisecond},
		} {
			pass(c.after)
			got := d.post(path, c.body).want(200)
			s := verify(got.str("statement"))
			if holds := time.Until(s.Expires); holds != c.want || got.num("expires_in_ms") != c.want.Milliseconds() {
				t.Errorf("%s holds for %v, says %d ms; want %v", c.body, holds, got.num("expires_in_ms"), c.want)
			}
		}
		for body, code := range map[string]string{
			`{"ttl_ms":0}`: "invalid_ttl", `{"ttl_ms":300001}`: "invalid_ttl", `{"ttl_ms":-1}`: "invalid_ttl",
			`{"ttl":"1s"}`: "invalid_request",
		} {
			d.post(path, body).want(400, code)
		}
		pass(time.Second)
		d.post(path, ``).want(410)
	})
}

// The check knows the keys' spellings, the namespace, and whether the lease lives.
func TestCheckStatement(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.send(d.request("PUT", "/v1/patterns/account", `{"pattern":"account:{id}","aliases":["acct-{id}"]}`)).want(200)
		sign := func(body string, headers ...string) string {
			t.Helper()
			lease := d.post("/v1/leases", body, headers...).want(200).str("lease.id")
			return d.post("/v1/leases/"+lease+"/statement", ``, headers...).want(200).str("statement")
		}
		check := func(key, text string, headers ...string) *reply {
			t.Helper()
			return d.post("/v1/fences/check", `{"key":"`+key+`","statement":"`+text+`"}`, headers...)
		}
		text := sign(`{"claims":[{"key":"acct-1"}]}`)
		check("account:1", text).want(200)
		check("acct-1", text).want(200)
		check("acct-2", text).want(403, "foreign_fence")
		other := sign(`{"claims":[{"key":"account:1"}]}`, "Interlock-Namespace", "other")
		check("account:1", other).want(403, "foreign_fence").says("detail", "namespace")
		check("account:1", text, "Interlock-Namespace", "other").want(403, "foreign_fence")
		shared := sign(`{"claims":[{"key":"account:3","mode":"shared"}]}`)
		check("account:3", shared).want(403, "foreign_fence")
		d.post("/v1/fences/check", `{"key":"account:1","fence":"1","statement":"`+text+`"}`).want(
			400, "invalid_request",
		).says("detail", "omit one")
		d.post("/v1/fences/check", `{"key":"account:1","statement":""}`).want(400, "invalid_request")
		d.post("/v1/fences/check", `{"statement":"`+text+`"}`).want(400, "invalid_request")
		d.post("/v1/fences/check", `{"key":"account:1"}`).want(400, "invalid_request")
		pass(signed.DefaultTTL)
		check("account:1", text).want(401, "invalid_statement").says("detail", "expired")
	})
}

// Only the operator of the server rotates, since the keys are those of all tenants, only by a
// call that no page of another site can make, and what was signed before holds on.
func TestRotateFenceKeys(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		agentSecret, agentLine := newSecret(t, "agent", "acme")
		tenantSecret, tenantLine := newSecret(t, "tenant-ops", "acme")
		operatorSecret, operatorLine := newSecret(t, "ops", "acme")
		credentials := credentialsFile(t, agentLine, tenantLine+" operator", operatorLine+" agent server")
		d := newDoor(t, func(c *Config) { c.Credentials = credentials })
		agent, operator := []string{
			"Authorization", "Bearer " + agentSecret,
		}, []string{"Authorization", "Bearer " + operatorSecret}
		d.post("/v1/fences/keys/rotate", `{}`, agent...).want(403, "forbidden")
		keys := d.get("/v1/fences/keys").want(200).raw
		for range 20 { // more than there may be former keys
			d.post("/v1/fences/keys/rotate", `{}`, "Authorization", "Bearer "+tenantSecret).want(403, "forbidden").says(
				"detail", "needs the role server",
			)
		}
		if now := d.get("/v1/fences/keys").want(200).raw; now != keys {
			t.Errorf("a tenant's operator changed the keys of all: %s", now)
		}
		d.post("/v1/fences/keys/rotate", `{}`).want(401, "unauthenticated")
		d.loose = true
		d.post("/v1/fences/keys/rotate", ``, operator...).want(415)
		d.loose = false
		lease := d.post("/v1/leases", `{"claims":[{"key":"a"}]}`, agent...).want(200).str("lease.id")
		before := d.post("/v1/leases/"+lease+"/statement", ``, agent...).want(200)
		id := d.post("/v1/fences/keys/rotate", `{}`, operator...).want(200).str("key_id")
		after := d.post("/v1/leases/"+lease+"/statement", ``, agent...).want(200).is("key_id", id)
		for _, text := range []string{before.str("statement"), after.str("statement")} {
			d.post("/v1/fences/check", `{"key":"a","statement":"`+text+`"}`, agent...).want(200)
		}
		count := func() int {
			var set struct{ Keys []any }
			if err := json.Unmarshal([]byte(d.get("/v1/fences/keys").want(200).raw), &set); err != nil {
				t.Fatal(err)
			}
			return len(set.Keys)
		}
		if n := count(); n != 2 {
			t.Errorf("%d keys are published, want 2", n)
		}
		pass(signed.MaxTTL)
		if n := count(); n != 1 {
			t.Errorf("%d keys are published when all that the former one signed has expired, want 1", n)
		}
	})
}

// An agent's name cannot break out of a statement.
func TestStatementText(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		lease := d.post(
			"/v1/leases", `{"agent":"a\",\"ns\":\"other\u202e<b>","claims":[{"key":"a"}]}`,
		).want(200).str("lease.id")
		text := d.post("/v1/leases/"+lease+"/statement", ``).want(200).str("statement")
		s, err := d.server.fences.KeySet(time.Now()).Verify(
			text, time.Now(), signed.Want{Namespace: interlock.DefaultNamespace, Key: "a"},
		)
		if err != nil || !strings.Contains(s.Holder.Agent, `a","ns":"other`) || strings.Contains(s.Holder.Agent, "\u202e") {
			t.Errorf("%+v, %v", s, err)
		}
	})
}
