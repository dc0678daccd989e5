package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

const charge = `"tool":"stripe.charge","target":"customer:12","arguments":{"cents":1200,"currency":"eur"}`

// The same action written in another way gets the first one's result.
func TestAnActionIsDoneOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		first := d.post("/v1/effects", `{"agent":"ann",`+charge+`}`).want(200).is("outcome", "claimed")
		first.is(
			"effect.canonical", `{"arguments":{"cents":1200,"currency":"eur"},"target":"customer:12","tool":"stripe.charge"}`,
		)
		id, digest := first.str("effect.id"), first.str("effect.action")
		other := `{"agent":"ben","target":"customer:12","arguments":{"currency":"eu\u0072","cents":1.2e3},"tool":"stripe.charge"}`
		refused := d.post("/v1/effects", other).want(409, "effect_claimed").is("effect.agent", "ann").is(
			"effect.action", digest,
		)
		if refused.at("effect.id") != nil {
			t.Error("another one sees the secret")
		}
		d.post("/v1/effects", `{"agent":"ann","ttl_ms":1000,"tool":"short","target":"x"}`).want(200)
		short := d.post("/v1/effects", `{"agent":"ben","tool":"short","target":"x"}`).want(409, "effect_claimed")
		if a, b := refused.num("advice.retry_after_ms"), short.num("advice.retry_after_ms"); a != 5000 || b < 1 || b > 1000 {
			t.Errorf("to be asked again after %v and %v ms, want 5000 and no later than the claim's end", a, b)
		}
		d.post("/v1/effects/"+id+"/done", `{"result": {"charge": "ch_1", "n": [1, 2]}}`).want(200).is("outcome", "done")
		d.post("/v1/effects/"+id+"/done", `{"result": {"charge": "ch_1", "n": [1, 2]}}`).want(200)
		d.post("/v1/effects/"+id+"/done", `{"result": {"charge": "ch_2"}}`).want(409, "effect_done").is(
			"effect.result.charge", "ch_1",
		)
		d.post("/v1/effects", other).want(200).is("outcome", "done").is("effect.result.charge", "ch_1")
		if got := d.get("/v1/effects/" + digest).want(200); got.at("effect.id") != nil || got.str("effect.agent") != "ann" {
			t.Error(got.raw)
		}
		d.post("/v1/effects/"+digest+"/reconcile", `{"happened":false}`).want(409, "effect_done")
		for path, code := range map[string]string{
			"/v1/effects/e_1/done":                                  "invalid_id",
			"/v1/effects/" + digest + "/done":                       "invalid_id",
			"/v1/effects/" + id + "/reconcile":                      "invalid_id",
			"/v1/effects/" + digest[:63] + "g/reconcile":            "invalid_id",
			"/v1/effects/" + digest + "0/reconcile":                 "invalid_id",
			"/v1/effects/e_00000000000000000000000000000099/cancel": "unknown_effect",
			"/v1/effects/" + strings.Repeat("1", 64) + "/reconcile": "unknown_effect",
		} {
			body := "{}"
			if strings.HasSuffix(path, "reconcile") {
				body = `{"happened":true}`
			}
			if got := d.post(path, body); got.str("code") != code {
				t.Errorf("%s: %s", path, got.raw)
			}
		}
	})
}

func TestActionsAreReadStrictly(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		for body, want := range map[string]string{
			`{"target":"x"}`: "tool is empty",
			`{"tool":"x"}`:   "target is empty",
			`{"tool":"x","target":"y","arguments":[]}`:                         "want a JSON object",
			`{"tool":"x","target":"y","arguments":{"a":1,"a":2}}`:              "occurs twice",
			`{"tool":"x","target":"y","arguments":{"cents":9007199254740993}}`: "as a string",
			`{"tool":"x","target":"y","lease":"x"}`:                            "id of a lease",
		} {
			if got := d.post("/v1/effects", body).want(400); !strings.Contains(got.str("detail"), want) {
				t.Errorf("%s: %s", body, got.raw)
			}
		}
		d.post(
			"/v1/effects", `{"tool":"x","target":"y","arguments":{"a":"`+strings.Repeat("x", interlock.MaxActionBytes)+`"}}`,
		).want(400, "too_long")
		digest := d.post("/v1/effects", `{"tool":"x","target":"y"}`).want(200).str("effect.action")
		d.post("/v1/effects/"+digest+"/reconcile", `{}`).want(400, "invalid_request").says("detail", "happened")
		d.post("/v1/effects/"+digest+"/reconcile", `{"happened":false,"result":1}`).want(400, "invalid_request").says(
			"detail", "result",
		)
		d.get("/v1/effects?state=free").want(400, "invalid_request")
	})
}

// A waiter for an effect is answered when it is settled, however that comes about.
func TestWaitingForAnEffect(t *testing.T) {
	const waits = `{"agent":"ben","wait_ms":50000,` + charge + `}`
	for name, c := range map[string]struct {
		claim  func(d *door) string // returns the fields of the claim
		settle func(d *door, id string)
		after  time.Duration
		status int
		is     string // outcome, or code
	}{
		"done": {
			nil, func(d *door, id string) { d.post("/v1/effects/"+id+"/done", `{"result":"ok"}`).want(200) }, 0, 200, "done",
		},
		"cancelled": {nil, func(d *door, id string) { d.post("/v1/effects/"+id+"/cancel", ``).want(200) }, 0, 200, "claimed"},
		"unknown": {
			nil, func(d *door, id string) { d.post("/v1/effects/"+id+"/unknown", ``).want(200) }, 0, 409, "effect_unknown",
		},
		"its ttl": {func(*door) string { return `"ttl_ms":20000,` }, nil, 20 * time.Second, 409, "effect_unknown"},
		"its session dies": {
			func(d *door) string { return `"session":"` + d.session("ann") + `",` }, nil,
			interlock.DefaultTTL, 409, "effect_unknown",
		},
		"its session ends": {
			func(d *door) string {
				d.notes["session"] = d.session("ann")
				return `"session":"` + d.notes["session"] + `",`
			},
			func(d *door, _ string) { d.delete("/v1/sessions/" + d.notes["session"]).want(200) }, 0, 409, "effect_unknown",
		},
		"its lease ends": {
			func(d *door) string {
				d.notes["lease"] = d.acquire("ann", "customer:12")
				return `"lease":"` + d.notes["lease"] + `",`
			},
			func(d *door, _ string) { d.post("/v1/leases/"+d.notes["lease"]+"/release", ``).want(200) }, 0, 409,
			"effect_unknown",
		},
		"its lease is closed": {
			func(d *door) string {
				lease := d.post(
					"/v1/leases",
					`{"agent":"ann","ttl_ms":10000,"grace_ms":0,"lock_delay_ms":30000,"claims":[{"key":"customer:12"}]}`,
				).want(200)
				return `"lease":"` + lease.str("lease.id") + `",`
			},
			nil, 10 * time.Second, 409, "effect_unknown",
		},
		"nothing":       {func(*door) string { return `"ttl_ms":3600000,` }, nil, 50 * time.Second, 409, "effect_claimed"},
		"a server ends": {nil, func(d *door, _ string) { d.server.Drain() }, 0, 409, "effect_claimed"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				d := newDoor(t)
				d.notes = map[string]string{}
				fields := ""
				if c.claim != nil {
					fields = c.claim(d)
				}
				id := d.post("/v1/effects", `{"agent":"ann",`+fields+charge+`}`).want(200).str("effect.id")
				began := time.Now()
				waiting := d.start(d.request("POST", "/v1/effects", waits, "Idempotency-Key", "one"))
				pass(time.Second)
				d.acquire("somebody", "else") // something else happens
				if c.settle != nil {
					c.settle(d, id)
				}
				got := (<-waiting).want(c.status)
				if got.str("outcome")+got.str("code") != c.is {
					t.Error(got.raw)
				}
				if took := time.Since(began); took < c.after || took > c.after+2*time.Second {
					t.Errorf("it took %s, want %s", took, c.after)
				}
				pass(1)
				if len(d.server.settling.rooms) > 0 {
					t.Error("the journal is followed although nobody waits")
				}
			})
		})
	}
}

// meddler is a shard where something happens between two steps of its user.
type meddler struct {
	Shard
	steps  int    // until it happens
	happen func() // nil: it has
}

func (m *meddler) step() {
	if m.happen == nil {
		return
	}
	if m.steps--; m.steps == 0 {
		happen := m.happen
		m.happen = nil
		happen()
	}
}

func (m *meddler) Do(ctx context.Context, cmd engine.Command) (engine.Effect, interlock.At, error) {
	eff, at, err := m.Shard.Do(ctx, cmd)
	m.step()
	return eff, at, err
}

func (m *meddler) At() interlock.At {
	at := m.Shard.At()
	m.step()
	return at
}

// A waiter for an effect misses nothing, after whichever of its steps the effect is settled: it
// learns it at once.
func TestSettledBetweenTwoSteps(t *testing.T) {
	for steps := 1; steps <= 3; steps++ { // it asks, takes a place, and asks again
		inBubble(t, func(t *testing.T) {
			var m *meddler
			d := newDoor(t, func(c *Config) {
				m = &meddler{Shard: c.Shard}
				c.Shard = m
			})
			id := d.post("/v1/effects", `{"agent":"ann","ttl_ms":3600000,`+charge+`}`).want(200).str("effect.id")
			m.steps, m.happen = steps, func() { d.post("/v1/effects/"+id+"/done", `{"result":1}`).want(200) }
			began := time.Now()
			got := d.post("/v1/effects", `{"agent":"ben","wait_ms":50000,`+charge+`}`)
			if took := time.Since(began); m.happen != nil || got.status != 200 || got.str("outcome") != "done" ||
				took > time.Second {
				t.Errorf("settled after step %d: %d %s after %v", steps, got.status, got.raw, took)
			}
		})
	}
}

// Many wait for one: exactly one of them gets the claim when it was not done.
func TestOneOfManyGetsTheClaim(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		id := d.post("/v1/effects", `{"agent":"ann",`+charge+`}`).want(200).str("effect.id")
		var waiting []<-chan *reply
		for i := range 20 {
			waiting = append(
				waiting,
				d.start(d.request(
					"POST", "/v1/effects", fmt.Sprintf(`{"agent":"a%d","wait_ms":50000,"ttl_ms":3600000,%s}`, i, charge),
				)),
			)
		}
		ctx, leave := context.WithCancel(t.Context())
		gone := d.start(d.request("POST", "/v1/effects", `{"agent":"gone","wait_ms":50000,`+charge+`}`).WithContext(ctx))
		d.loose = true // a caller that left gets no answer
		pass(time.Second)
		leave()
		<-gone
		d.post("/v1/effects/"+id+"/cancel", `{"reason":"card refused"}`).want(200).is("outcome", "free")
		claimed := 0
		for _, ch := range waiting {
			got := <-ch
			switch {
			case got.status == 200 && got.str("outcome") == "claimed":
				claimed++
			case got.str("code") != "effect_claimed":
				t.Error(got.raw)
			}
		}
		if claimed != 1 {
			t.Errorf("%d got the claim", claimed)
		}
	})
}
