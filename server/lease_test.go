package server

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
)

func TestWaitWithinTheCall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		holder := d.acquire("billing-7", "account:1")
		waiting := d.start(d.request(
			"POST", "/v1/leases", `{"agent":"support-2","wait_ms":20000,"claims":[{"key":"account:1"}]}`,
		))
		pass(5 * time.Second)
		d.post("/v1/leases/"+holder+"/release", `{"note":"fee charged\nbalance 12.50\u001b[31m"}`).want(200)
		got := (<-waiting).want(200).is("outcome", "granted").is("lease.fence", "2")
		got.is("notes.0.text", "fee charged\nbalance 12.50 [31m").is("notes.0.agent", "billing-7")
		if changed := got.at("changed"); changed != true {
			t.Errorf("changed is %v", changed)
		}
	})
}

func TestWaitOutlivesTheCall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		holder := d.acquire("billing-7", "account:1")
		start := time.Now()
		queued := d.post("/v1/leases", `{"agent":"support-2","wait_ms":10000,"claims":[{"key":"account:1"}]}`).want(202)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("the call took %v", took)
		}
		queued.is("outcome", "queued").is("holders.0.agent", "billing-7").is("advice.action", "wait")
		queued.says(
			"advice.message", "account:1 is held by billing-7 (", "for 10 s", "you are 1st of 1 in line", "stay in line",
		)
		ticket := queued.str("ticket.id")
		// The place is kept while a caller asks after it, for longer than any call.
		for range 5 {
			d.post("/v1/leases/"+holder+"/renew", "").want(200)
			d.get("/v1/tickets/" + ticket + "?wait_ms=25000").want(202).num("ticket.position")
		}
		polling := d.start(d.request("GET", "/v1/tickets/"+ticket+"?wait_ms=25000", ""))
		synctest.Wait()
		d.post("/v1/leases/"+holder+"/release", "").want(200)
		granted := (<-polling).want(200)
		d.get("/v1/leases/"+granted.str("lease.id")).want(200).is("lease.fence", granted.str("lease.fence"))
		d.get("/v1/tickets/"+ticket).want(200).is("lease.id", granted.str("lease.id"))
	})
}

func TestLongestWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.post("/v1/leases", `{"ttl_ms":3600000,"claims":[{"key":"a"}]}`).want(200)
		for _, wait := range []string{"56000", "9223372036854775807"} {
			start := time.Now()
			d.post("/v1/leases", `{"wait_ms":`+wait+`,"claims":[{"key":"a"}]}`).want(202)
			if took := time.Since(start); took != interlock.MaxLongPoll {
				t.Errorf("wait_ms %s took %v", wait, took)
			}
		}
	})
}

func TestOnConflictDefaults(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.acquire("a", "k")
		for body, want := range map[string]int{
			`{}`: 409, `{"wait_ms":0}`: 202, `{"on_conflict":"wait"}`: 202, `{"on_conflict":"wait","wait_ms":0}`: 202,
			`{"on_conflict":"fail"}`: 409, `{"on_conflict":"fail","wait_ms":0}`: 409, `{"on_conflict":"fail","wait_ms":1}`: 400,
			`{"on_conflict":"skip"}`: 200, `{"wait_ms":1}`: 202, `{"on_conflict":"maybe"}`: 400,
		} {
			start := time.Now()
			got := d.post(
				"/v1/leases", strings.TrimSuffix(strings.Replace(body, "{", `{"claims":[{"key":"k"}],`, 1), ",}")+closing(body),
			)
			if got.status != want {
				t.Errorf("%s: %d %s, want %d", body, got.status, got.raw, want)
			}
			if took := time.Since(start); took > time.Millisecond {
				t.Errorf("%s took %v", body, took)
			}
		}
	})
}

// closing puts the brace back that an empty object lost.
func closing(body string) string {
	if body == "{}" {
		return "}"
	}
	return ""
}

// A caller that hangs up and can never learn its ticket must not stay in line.
func TestCallerLeaves(t *testing.T) {
	for _, c := range []struct {
		name    string
		headers []string
		stays   int64
	}{{"without a request id", nil, 0}, {"with one", []string{"Idempotency-Key", "mine"}, 1}} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				d := newDoor(t)
				holder := d.acquire("billing-7", "account:1")
				ctx, hangUp := context.WithCancel(t.Context())
				const body = `{"wait_ms":20000,"claims":[{"key":"account:1"}]}`
				r := d.request("POST", "/v1/leases", body, c.headers...)
				done := make(chan struct{})
				go func() {
					defer close(done)
					d.handler.ServeHTTP(discard{}, r.WithContext(ctx))
				}()
				pass(time.Second)
				if n := d.get("/v1/keys/account:1").num("length"); n != 1 {
					t.Fatalf("%d in line", n)
				}
				hangUp()
				<-done
				if n := d.get("/v1/keys/account:1").num("length"); n != c.stays {
					t.Fatalf("%d in line after the caller left, want %d", n, c.stays)
				}
				if c.stays == 0 {
					return
				}
				// The same request finds its place again, and gets the key.
				again := d.start(d.request("POST", "/v1/leases", body, c.headers...))
				pass(time.Second)
				d.post("/v1/leases/"+holder+"/release", "").want(200)
				(<-again).want(200).is("lease.fence", "2")
			})
		})
	}
}

// A wait that was asked after by two calls must be reported to the one that still listens.
func TestTwoPollsOfOneTicket(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		holder := d.post("/v1/leases", `{"ttl_ms":600000,"claims":[{"key":"k"}]}`).str("lease.id")
		ticket := d.post("/v1/leases", `{"on_conflict":"wait","claims":[{"key":"k"}]}`).want(202).str("ticket.id")
		first := d.start(d.request("GET", "/v1/tickets/"+ticket+"?wait_ms=10000", ""))
		pass(time.Second)
		second := d.start(d.request("GET", "/v1/tickets/"+ticket+"?wait_ms=50000", ""))
		(<-first).want(202)
		d.post("/v1/leases/"+holder+"/release", "").want(200)
		start := time.Now()
		(<-second).want(200)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("told after %v", waited)
		}
	})
}

func TestDrain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		holder := d.acquire("billing-7", "account:1")
		ticket := d.post("/v1/leases", `{"on_conflict":"wait","claims":[{"key":"account:1"}]}`).want(202).str("ticket.id")
		acquiring := d.start(d.request("POST", "/v1/leases", `{"wait_ms":50000,"claims":[{"key":"account:1"}]}`))
		polling := d.start(d.request("GET", "/v1/tickets/"+ticket+"?wait_ms=50000", ""))
		pass(time.Second)
		start := time.Now()
		d.server.Drain()
		d.server.Drain()
		// A caller that does not know its ticket yet receives it; one that does is asked to come
		// back.
		second := (<-acquiring).want(202).str("ticket.id")
		if got := (<-polling).want(503, "shutting_down"); got.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("draining took %v", took)
		}
		if err := d.shard.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.post("/v1/leases", `{"claims":[{"key":"other"}]}`).want(503, "shutting_down")
		d.post("/v1/leases", `{"wait_ms":1000,"claims":[{"key":"other"}]}`).want(503, "shutting_down")
		d.post("/v1/leases/"+holder+"/release", "").want(200)
		d.get("/v1/tickets/" + ticket).want(202)

		// After the restart the line is as it was.
		d.reopen()
		pass(time.Second)
		d.get("/v1/tickets/" + ticket + "?wait_ms=1000").want(200)
		d.get("/v1/tickets/"+second).want(202).is("outcome", "queued")
	})
}

func TestRestartKeepsLeasesAndRequestIDs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		const body = `{"agent":"a","claims":[{"key":"k"}]}`
		first := d.post("/v1/leases", body, "Idempotency-Key", "one").want(200)
		d.reopen()
		again := d.post("/v1/leases", body, "Idempotency-Key", "one").want(200)
		again.is("lease.id", first.str("lease.id")).is("lease.fence", first.str("lease.fence")).is("at.epoch", "2")
		d.post("/v1/leases", `{"agent":"b","claims":[{"key":"k"}]}`, "Idempotency-Key", "one").want(422, "request_id_reused")
		d.post("/v1/leases/"+first.str("lease.id")+"/release", `{"outcome":"done"}`, "Idempotency-Key", "two").want(200)
		d.reopen()
		d.post("/v1/leases/"+first.str("lease.id")+"/release", `{"outcome":"done"}`, "Idempotency-Key", "two").want(200)
		d.post("/v1/leases/"+first.str("lease.id")+"/release", "").want(410, "released")
	})
}

func TestGoneLeaseSaysWhy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		id := d.acquire("frozen", "k")
		pass(interlock.DefaultTTL + interlock.DefaultGrace)
		d.post("/v1/leases/"+id+"/release", "").want(410, "expired").is("advice.action", "re_read")
		d.acquire("next", "k")
		got := d.post("/v1/leases/"+id+"/release", "").want(410, "taken")
		got.is("holders.0.agent", "next").says("detail", "k is held by next").says("advice.message", "write nothing more")
	})
}

// Ids of another tenant are as unknown as ids that never were.
func TestTenantsDoNotMeet(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		acme := []string{"Interlock-Namespace", "acme"}
		held := d.post("/v1/leases", `{"agent":"secret-agent","claims":[{"key":"k"},{"key":"l"}]}`, acme...).want(200)
		lease := held.str("lease.id")
		session := d.post("/v1/sessions", `{}`, acme...).str("session.id")
		ticket := d.post("/v1/leases", `{"on_conflict":"wait","claims":[{"key":"k"}]}`, acme...).want(202).str("ticket.id")
		cursor := d.get("/v1/keys?limit=1", acme...).str("cursor")
		if cursor == "" {
			t.Fatal("no cursor")
		}
		for _, r := range []*reply{
			d.get("/v1/leases/" + lease), d.post("/v1/leases/"+lease+"/renew", ""), d.post("/v1/leases/"+lease+"/release", ""),
			d.get("/v1/tickets/" + ticket), d.delete("/v1/tickets/" + ticket), d.get("/v1/tickets/" + ticket + "?wait_ms=5"),
			d.post("/v1/sessions/"+session+"/heartbeat", ""), d.delete("/v1/sessions/" + session),
			d.post("/v1/leases", `{"session":"`+session+`","claims":[{"key":"k"}]}`), d.get("/v1/keys?limit=1&cursor=" + cursor),
		} {
			r.want(404)
			if strings.Contains(r.raw, "secret-agent") || strings.Contains(r.raw, "acme") {
				t.Errorf("%s tells of another tenant: %s", r.what, r.raw)
			}
		}
		d.post("/v1/leases", `{"claims":[{"key":"k"}]}`).want(200)
		d.post("/v1/revocations", `{"key":"l","fence":"`+held.str("lease.fence")+`"}`).want(409, "fenced")
		for _, path := range []string{
			"/v1/keys", "/v1/keys/l", "/v1/waits", "/v1/hot", "/v1/why?key=l", "/v1/why?agent=secret-agent", "/v1/events",
		} {
			if got := d.get(path); strings.Contains(
				strings.ReplaceAll(got.raw, `"agent":"secret-agent","text"`, ""), `"secret-agent"`,
			) ||
				strings.Contains(got.raw, `"l"`) && path == "/v1/keys" {
				t.Errorf("%s tells of another tenant: %s", path, got.raw)
			}
		}
		d.get("/v1/leases/"+lease, acme...).want(200)
		d.get("/v1/keys", "Interlock-Namespace", "acme", "Interlock-Namespace", "other").want(400, "invalid_namespace")
		for _, bad := range []string{"a b", "a/b", "ä", strings.Repeat("x", 129)} {
			d.get("/v1/keys", "Interlock-Namespace", bad).want(400, "invalid_namespace")
		}
	})
}

func TestKeysOfAllShapes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		for key, path := range map[string]string{
			"repo:web/src/auth.ts": "repo:web/src/auth.ts",
			"a b":                  "a%20b",
			"100%":                 "100%25",
			"a+b?c#d":              "a+b%3Fc%23d",
			"%2F":                  "%252F",
			"schlüssel/ключ":       "schl%C3%BCssel%2F%D0%BA%D0%BB%D1%8E%D1%87",
			"account:1;x=y&z":      "account:1;x=y&z",
		} {
			d.post("/v1/leases", fmt.Sprintf(`{"claims":[{"key":%q}]}`, key)).want(200)
			d.get("/v1/keys/"+path).want(200).is("key", key).is("state", "held")
		}
		for _, path := range []string{
			"", "a//b", "a/../b", "a/.", "../a", "a%00", "a%2F%2Fb", "%2E%2E/a", "a%E2%80%8Bb", "a%FF", "/a", "a/",
			strings.Repeat("x", 513), strings.Repeat("x/", 16) + "x",
		} {
			d.get("/v1/keys/"+path).want(400, "invalid_key")
		}
	})
}

func TestFencesAboveTwoToThe53(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.acquire("a", "k")
		big := fmt.Sprint(uint64(math.MaxUint64))
		d.post("/v1/fences/check", `{"key":"k","fence":"`+big+`"}`).want(409, "fenced").says("detail", big)
		d.post("/v1/fences/check", `{"key":"k","fence":"18446744073709551616"}`).want(400, "invalid_request")
		d.post("/v1/fences/check", `{"key":"k","fence":9007199254740993}`).want(400, "invalid_request").says(
			"detail", "decimal string", "2^53",
		)
		for _, bad := range []string{`"01"`, `"+1"`, `"-1"`, `""`, `"1.0"`, `"0"`, `true`, `null`} {
			d.post("/v1/fences/check", `{"key":"k","fence":`+bad+`}`).want(400, "invalid_request")
		}
	})
}

// discard is a writer of answers that are not read.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
