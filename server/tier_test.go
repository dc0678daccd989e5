package server

import (
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

// A holder that sends heartbeats and reports no progress is warned, loses its lease, and learns
// which of the tiers it was.
func TestStall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		s := d.session("looper")
		got := d.post("/v1/leases", `{"session":"`+s+`","stall_ms":30000,"grace_ms":2000,"claims":[{"key":"k"}]}`).want(200)
		if got.num("lease.stall_in_ms") != 30_000 {
			t.Error(got.raw)
		}
		beat := func(body string) *reply { return d.post("/v1/sessions/"+s+"/heartbeat", body).want(200) }
		pass(10 * time.Second)
		beat(`{"progress":"1/9"}`)
		pass(10 * time.Second)
		beat(`{"progress":"1/9"}`) // no progress
		pass(12 * time.Second)
		warned := beat("").is("warnings.0.lease.state", "soft").is("warnings.0.advice.action", "retry")
		warned.says("warnings.0.advice.message", "the lease on k ends in 8 s unless you report progress")
		pass(9 * time.Second)
		lost := beat("").is("losses.0.lease.state", "grace").is("losses.0.lease.ended_by", "stall").is(
			"losses.0.code", "in_grace",
		)
		lost.says("losses.0.detail", "no progress")
		d.post("/v1/leases/"+got.str("lease.id")+"/renew", "").want(409, "in_grace").is("ended_by", "stall")
		pass(2 * time.Second)
		d.post("/v1/leases/"+got.str("lease.id")+"/renew", "").want(410, "expired").is("ended_by", "stall").says(
			"detail", "no progress",
		)
		if events := d.get("/v1/events").raw; !strings.Contains(events, `"reason":"stall"`) ||
			!strings.Contains(events, `"stall_ms":30000`) {
			t.Error(events)
		}
	})
}

// The keys of a holder that died stay closed for a while, and all callers get that reason.
func TestLockDelay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		s := d.session("careless")
		got := d.post("/v1/leases", `{"session":"`+s+`","lock_delay_ms":20000,"grace_ms":0,"claims":[{"key":"k"}]}`).want(200)
		if got.num("lease.lock_delay_ms") != 20_000 {
			t.Error(got.raw)
		}
		pass(interlock.DefaultTTL + 5*time.Second)
		held := d.post("/v1/leases", `{"claims":[{"key":"k"}]}`).want(409, "held").is("conflict_kind", "lock_delay").is(
			"holders.0.liveness", "closed",
		)
		held.says("detail", "k stays closed for another 15 s, because its last holder careless died")
		if held.header.Get("Retry-After") != "15" {
			t.Errorf("%v", held.header)
		}
		why := d.get("/v1/why?key=k").want(200).says(
			"text", "k stays closed for another 15 s, because its last holder careless died",
		)
		why.says("advice.message", "it opens automatically in 15 s", "can revoke fence 1").is("chain.0.liveness", "closed")
		gone := d.get("/v1/leases/"+got.str("lease.id")).want(410, "expired").is("ended_by", "session_expired").is(
			"advice.action", "re_read",
		)
		gone.says("detail", "its keys stay closed for 20s").says("advice.message", "wait in line")
		if gone.num("advice.retry_after_ms") != 15_000 || strings.Contains(gone.raw, "free") {
			t.Error(gone.raw)
		}
		start := time.Now()
		d.post("/v1/leases", `{"wait_ms":50000,"claims":[{"key":"k"}]}`).want(200)
		if took := time.Since(start); took != 15*time.Second {
			t.Errorf("it opened after %v", took)
		}
		if story := kinds(lines(t, d.get("/v1/events").raw)); !strings.Contains(story, "closed") {
			t.Error(story)
		}
		// One hold, counted once.
		if n := d.figure(`interlock_hold_seconds_count{mode="exclusive",outcome="session_expired"}`); n != "1" {
			t.Errorf("%s holds were counted", n)
		}
		if n := d.figure(`interlock_expiries_total{tier="ended"}`); n != "1" {
			t.Errorf("%s expiries were counted", n)
		}
	})
}

// An operator opens a closed key at once.
func TestRevocationOpensAClosedKey(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.post("/v1/leases", `{"lock_delay_ms":600000,"grace_ms":0,"claims":[{"key":"k"}]}`).want(200)
		pass(interlock.DefaultTTL + time.Second)
		d.post("/v1/revocations", `{"key":"k","fence":"1"}`).want(200)
		d.acquire("next", "k")
	})
}

func TestWaitLimit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.post("/v1/leases", `{"ttl_ms":600000,"claims":[{"key":"k"}]}`).want(200)
		start := time.Now()
		got := d.post("/v1/leases", `{"wait_ms":50000,"max_wait_ms":20000,"claims":[{"key":"k"}]}`).want(
			410, "wait_limit",
		).is("advice.action", "work_elsewhere")
		if took := time.Since(start); took != 20*time.Second {
			t.Errorf("told after %v", took)
		}
		if got.header.Get("Retry-After") == "" || got.at("retryable") != true {
			t.Error(got.raw)
		}
		ticket := d.post(
			"/v1/leases", `{"on_conflict":"wait","max_wait_ms":20000,"claims":[{"key":"k"}]}`,
		).want(202).str("ticket.id")
		pass(21 * time.Second)
		d.get("/v1/tickets/"+ticket).want(410, "wait_limit").is("ended_by", "wait_limit")
		if n := d.figure(`interlock_wait_seconds_count{mode="exclusive",outcome="wait_limit"}`); n != "2" {
			t.Errorf("%s were counted", n)
		}
	})
}
