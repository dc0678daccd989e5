package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/problem"
)

// A body that is wrong in one field is refused with a stable code, words that name
// the field, and a next step. Nothing is left behind.
func TestBadFields(t *testing.T) {
	const lease, key = "l_00000000000000000000000000000001", `{"key":"a"}`
	many := func(n int) string { return strings.TrimSuffix(strings.Repeat(key+",", n), ",") }
	type row struct{ body, code, words string }
	for call, rows := range map[string][]row{
		"POST /v1/leases": {
			{
				`{"claims":[{"key":"a","mode":"shared","permits":2}]}`, "invalid_request",
				"claims[0]: a claim has a mode or permits, not both",
			},
			{`{"claims":[{"key":"a","permits":2,"parties":2}]}`, "invalid_request", "a claim has permits or parties, not both"},
			{
				`{"claims":[{"key":"a","permits":0}]}`, "invalid_request",
				"claims[0].permits: want a whole number from 1 to 1073741824, found 0",
			},
			{`{"claims":[{"key":"a","permits":1073741825}]}`, "invalid_request", "from 1 to 1073741824"},
			{`{"claims":[{"key":"a","permits":-1}]}`, "invalid_request", "found -1"},
			{`{"claims":[{"key":"a","permits":"2"}]}`, "invalid_request", "want a whole number"},
			{`{"claims":[{"key":"a","permits":1.5}]}`, "invalid_request", "want a whole number"},
			{`{"claims":[{"key":"a","parties":1000000}]}`, "invalid_request", fmt.Sprint("from 1 to ", interlock.MaxParties)},
			{`{"claims":[{"key":"a","parts":4097}]}`, "invalid_request", "from 1 to 4096"},
			{`{"claims":[{"key":"a","parts":true}]}`, "invalid_request", "found true or false"},
			{
				`{"claims":[{"key":"a","mode":"permits"}]}`, "invalid_request",
				"mode permits needs a number: add the field permits to the claim",
			},
			{`{"claims":[{"key":"a","mode":"barrier"}]}`, "invalid_request", "add the field parties to the claim"},
			{`{"claims":[{"key":"a","mode":"member"}]}`, "invalid_request", "add the field parts to the claim"},
			{`{"claims":[{"key":"a","mode":"write"}]}`, "invalid_mode", `no mode "write": use exclusive`},
			{`{"claims":[` + many(65) + `]}`, "too_many_claims", "more than 64 claims"},
			{`{"any":true,"claims":[` + many(1025) + `]}`, "too_many_claims", "more than 1024 alternatives"},
			{`{"any":true}`, "invalid_request", "field claims is missing"},
			{`{"any":1,"claims":[{"key":"a"}]}`, "invalid_request", "field any: want true or false"},
			{
				`{"any":"yes","claims":[{"key":"a"}]}`, "invalid_request",
				"field any: want true or false at byte 7, found a string",
			},
			{
				`{"any_prefix":"gpu:","claims":[{"key":"a"}]}`, "invalid_request",
				"any_prefix covers all keys of a pool: omit claims and any",
			},
			{`{"any_prefix":"gpu:","any":true}`, "invalid_request", "omit claims and any"},
			{`{"any":false,"any_prefix":"gpu:"}`, "invalid_request", "omit claims and any"},
			{`{"any_prefix":""}`, "invalid_request", "any_prefix is empty"},
			{`{"any_prefix":7}`, "invalid_request", "field any_prefix: want a string"},
			{`{"any_prefix":"gpu:"}`, "unmatched_key", "lists a member with the prefix"},
			{`{"group":7,"claims":[{"key":"a"}]}`, "invalid_request", "field group: want a string"},
			{
				`{"divide":"evenly","claims":[{"key":"a","parts":4}]}`, "invalid_request",
				`field divide: want hash, range or load, found "evenly"`,
			},
			{`{"divide":"hash","claims":[{"key":"a"}]}`, "invalid_request", "only a claim with parts can be divided"},
			{`{"stall_ms":-1,"claims":[{"key":"a"}]}`, "invalid_ttl", "field stall_ms: a duration cannot be negative"},
			{`{"stall_ms":86400001,"claims":[{"key":"a"}]}`, "invalid_ttl", "stall"},
			{`{"stall_ms":9223372036854775807,"claims":[{"key":"a"}]}`, "invalid_ttl", "stall"},
			{`{"lock_delay_ms":3600001,"claims":[{"key":"a"}]}`, "invalid_ttl", "lock_delay"},
			{`{"lock_delay_ms":"5s","claims":[{"key":"a"}]}`, "invalid_request", "field lock_delay_ms: want a whole number"},
			{`{"max_wait_ms":2592000001,"on_conflict":"wait","claims":[{"key":"a"}]}`, "invalid_ttl", "max_wait"},
			{`{"on_conflict":"preemt","claims":[{"key":"a"}]}`, "invalid_request", "want wait, fail, skip or preempt"},
			{
				`{"on_conflict":"skip","wait_ms":5,"claims":[{"key":"a"}]}`, "invalid_request",
				"needs on_conflict wait or preempt",
			},
		},
		"POST /v1/leases/" + lease + "/convert": {
			{`{}`, "invalid_request", "field claims is missing: name all claims of the converted lease"},
			{`{"claims":[` + many(65) + `]}`, "too_many_claims", "more than 64 claims"},
			{`{"claims":[{"key":"a"}],"on_conflict":"skip"}`, "invalid_request", "want wait, fail or preempt"},
			{`{"claims":[{"key":"a"}],"on_conflict":"fail","wait_ms":1}`, "invalid_request", "field wait_ms"},
			{
				`{"claims":[{"key":"a"}],"ttl_ms":1}`, "invalid_request",
				`unknown field "ttl_ms": known are claims, wait_ms, on_conflict, max_wait_ms`,
			},
		},
		"POST /v1/leases/" + lease + "/arrive": {
			{`{"wait_ms":-1}`, "invalid_ttl", "field wait_ms"},
			{`{"parties":3}`, "invalid_request", "known are wait_ms, max_wait_ms"},
		},
		"POST /v1/leases/" + lease + "/park": {
			{`{"keys":"choice"}`, "invalid_request", `field keys: want keep or free, found "choice"`},
			{`{"keys":true}`, "invalid_request", "field keys: want a string"},
			{`{"for_ms":-1}`, "invalid_ttl", "field for_ms"},
			{`{"reason":7}`, "invalid_request", "field reason: want a string"},
		},
		"POST /v1/leases/" + lease + "/resume": {
			{`{"session":"quiet-otter"}`, "invalid_id", "invalid id of a session"},
			{`{"on_conflict":"skip"}`, "invalid_request", "want wait, fail or preempt"},
		},
		"POST /v1/leases/nonsense/park": {{`{}`, "invalid_id", "invalid id of a lease"}},
		"POST /v1/waits": {
			{`{}`, "invalid_request", "field on is missing or empty"},
			{`{"on":{}}`, "invalid_request", "field on is missing or empty"},
			{`{"on":{"flow":"main"}}`, "invalid_request", "field on is missing or empty"},
			{`{"on":"support-2"}`, "invalid_request", "field on: want an object"},
			{`{"on":{"name":"support-2"}}`, "invalid_request", `unknown field on."name": known are session, flow, agent`},
			{`{"on":{"session":"s_00000000000000000000000000000001"}}`, "invalid_request", "public name of a session"},
			{`{"on":{"agent":"b"},"session":"b"}`, "invalid_id", "invalid id of a session"},
		},
		"PUT /v1/patterns/account": {
			{`{}`, "invalid_request", "field pattern is missing"},
			{`{"pattern":7}`, "invalid_request", "field pattern: want a string"},
			{`{"pattern":"a:{id}","name":"account"}`, "invalid_request", `unknown field "name"`},
			{
				`{"pattern":"a:{id}","capacity":-1}`, "invalid_request",
				"field capacity: want a whole number from 0 to 1073741824",
			},
			{`{"pattern":"a:{id}","capacity":4294967296}`, "invalid_request", "field capacity: want a whole number from 0"},
			{`{"pattern":"a:{id}","rate":"60"}`, "invalid_request", "field rate: want a whole number"},
			{`{"pattern":"a:{id}","per_ms":-1}`, "invalid_ttl", "field per_ms"},
			{`{"pattern":"a:{id}","aliases":"a-{id}"}`, "invalid_request", "field aliases: want an array"},
			{`{"pattern":"a:{id}","aliases":[7]}`, "invalid_request", "field aliases[0]: want a string"},
			{
				`{"pattern":"a:{id}","groups":[{"name":"x","share":1}]}`, "invalid_request",
				`unknown field groups[0]."share": known are name, min, max`,
			},
			{
				`{"pattern":"a:{id}","groups":[` + strings.TrimSuffix(strings.Repeat(`{},`, 65), ",") + `]}`, "invalid_request",
				"field groups: more than 64 elements",
			},
			{`{"pattern":"a:{id}","allow":[{"modes":["shared"]}]}`, "invalid_request", "field allow[0]: principal is missing"},
			{`{"pattern":"a:{id}","allow":[{"principal":"*","modes":["write"]}]}`, "invalid_mode", "field allow[0].modes[0]"},
			{`{"pattern":"a:{id}","preempt":"always"}`, "invalid_request", "want ask, revoke or never"},
			{`{"pattern":"a:{id}","park":"maybe"}`, "invalid_request", "want choice, keep, free or never"},
			{`{"pattern":"a:{id}","on_deadlock":"ask"}`, "invalid_request", "want refuse or revoke"},
			{`{"pattern":"a:{id}","max_waiters":-1}`, "invalid_request", "field max_waiters"},
		},
		"PUT /v1/namespace": {
			{`{"strict_order":1}`, "invalid_request", "field strict_order: want true or false"},
			{`{"closed":null}`, "invalid_request", "null: leave the field out instead"},
			{`{"quota":7}`, "invalid_request", "field quota: want an object"},
			{`{"quota":{"keys":-1}}`, "invalid_request", "field quota.keys: want a whole number from 0"},
			{
				`{"principal_quota":{"tokens":1}}`, "invalid_request",
				`unknown field principal_quota."tokens": known are keys, leases`,
			},
		},
	} {
		method, path, _ := strings.Cut(call, " ")
		t.Run(strings.ReplaceAll(call, "/", "_"), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				d := newDoor(t)
				for _, r := range rows {
					got := d.send(d.request(method, path, r.body))
					if got.str("code") != r.code || !strings.Contains(got.str("detail"), r.words) {
						t.Errorf("%.100s: %d %s, want %s and %q", r.body, got.status, got.raw, r.code, r.words)
					}
					if want := problem.Of(interlock.Code(r.code)).Status; got.status != want {
						t.Errorf("%.100s: status %d, want %d", r.body, got.status, want)
					}
					if got.str("advice.action") == "" || got.str("advice.message") == "" {
						t.Errorf("%.100s: no next step in %s", r.body, got.raw)
					}
				}
				if got := d.get("/v1/keys").want(200); len(got.at("keys").([]any)) != 0 {
					t.Errorf("something is left behind: %s", got.raw)
				}
			})
		})
	}
}

// The claims of an answer can be sent back as they are.
func TestClaimsOfAnswersAreClaimsOfRequests(t *testing.T) {
	var j jsonOut
	j.open("")
	writeClaims(&j, fullLease().Claims)
	j.close()
	d := jsonIn{b: j.b}
	var claims []interlock.Claim
	d.object([]string{"claims"}, func(int) { claims = d.claims(interlock.MaxClaims) })
	if d.err != nil {
		t.Fatal(d.err)
	}
	for i, c := range fullLease().Claims {
		if claims[i] != c {
			t.Errorf("%+v came back as %+v", c, claims[i])
		}
	}
}
