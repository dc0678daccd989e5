package server

import (
	"strings"
	"testing"
)

// Request ids belong to a principal: another one's request under the same id is a request
// of its own. A repeated answer is marked as one.
func TestRequestIDsOfPrincipals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		ann, annLine := newSecret(t, "ann", "acme")
		ben, benLine := newSecret(t, "ben", "acme")
		c := credentialsFile(t, annLine, benLine)
		d.reopen(func(cfg *Config) { cfg.Credentials = c })
		for path, c := range map[string]struct{ body, secret string }{
			"/v1/leases":   {`{"claims":[{"key":"k","mode":"shared"}]}`, "lease.id"},
			"/v1/sessions": {`{"agent":"x"}`, "session.id"},
			"/v1/effects":  {`{"tool":"t","target":"x"}`, "effect.id"},
		} {
			as := func(secret string) *reply {
				return d.post(path, c.body, "Authorization", "Bearer "+secret, "Idempotency-Key", "one"+path)
			}
			first := as(ann).want(200)
			if again := as(ann); again.header.Get("Idempotency-Replayed") != "true" ||
				first.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%s: a repeated answer has the header %v", path, again.header)
			}
			other := as(ben)
			if other.header.Get("Idempotency-Replayed") != "" ||
				other.at(c.secret) != nil && other.str(c.secret) == first.str(c.secret) {
				t.Errorf("%s: another principal gets %s", path, other.raw)
			}
		}
	})
}

// Of two callers that use one request id for one effect, only one learns that it claimed it.
func TestOneEffectTwoCallers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		const body = `{"tool":"pay","target":"x"}`
		first := d.post("/v1/effects", body, "Idempotency-Key", "plan-1").want(200).is("outcome", "claimed")
		other := d.post("/v1/effects", body, "Idempotency-Key", "plan-1").want(409, "effect_claimed")
		if strings.Contains(other.raw, first.str("effect.id")) || other.header.Get("Idempotency-Replayed") != "true" {
			t.Error("the second caller is shown the claimer's secret, or no replay: ", other.raw)
		}

		// A caller that proves that it was the first one gets its claim again.
		proved := `{"id":"e_` + strings.Repeat("1f", 16) + `","tool":"pay","target":"y"}`
		for range 2 {
			d.post("/v1/effects", proved, "Idempotency-Key", "plan-2").want(200).is("outcome", "claimed").is(
				"effect.id", "e_"+strings.Repeat("1f", 16),
			)
		}
		session := d.session("ann")
		inSession := `{"session":"` + session + `","tool":"pay","target":"z"}`
		for range 2 {
			d.post("/v1/effects", inSession, "Idempotency-Key", "plan-3").want(200).is("outcome", "claimed")
		}
		d.post("/v1/effects/"+first.str("effect.id")+"/done", `{"result":1}`).want(200)
		d.post("/v1/effects", body, "Idempotency-Key", "plan-1").want(200).is("outcome", "done")
		d.post("/v1/effects", `{"id":"e_0","tool":"pay","target":"y"}`).want(400, "invalid_id")
	})
}
