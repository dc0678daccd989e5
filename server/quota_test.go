package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// In no stretch of time come more than what is allowed in it and in one second besides; and a
// caller that comes back when asked to is let in.
func TestBucket(t *testing.T) {
	for _, rate := range []int64{1, 3, 7, 1000, 999_983, maxRate} {
		rnd := rand.New(rand.NewPCG(uint64(rate), 1))
		var b bucket
		var now time.Duration
		var taken []time.Duration
		for range 2000 {
			switch rnd.IntN(4) {
			case 0:
				now += time.Duration(rnd.Int64N(int64(3 * time.Second)))
			case 1:
				now += time.Duration(rnd.Int64N(int64(time.Second)/rate + 2))
			}
			b.refill(rate, now)
			wait := b.wait(rate)
			if wait == 0 {
				b.take(1)
				taken = append(taken, now)
				continue
			}
			if wait > time.Second/time.Duration(rate)+1 {
				t.Fatalf("rate %d: one token is %v away", rate, wait)
			}
			if now += wait - 1; rnd.IntN(2) == 0 {
				if b.refill(rate, now); b.wait(rate) != 1 {
					t.Fatalf("rate %d: a nanosecond early there are %v left", rate, b.wait(rate))
				}
			}
			now++
			if b.refill(rate, now); b.wait(rate) != 0 {
				t.Fatalf("rate %d: refused at the time that it gave", rate)
			}
		}
		for i, end := range taken {
			for k := i; k >= 0 && k > i-50; k-- {
				// Integers all the way: (n - rate) tokens need that many parts of time.
				if n := int64(i - k + 1); n > rate && (n-rate)*tokenParts > int64(end-taken[k])*rate {
					t.Fatalf("rate %d: %d came in %v", rate, n, end-taken[k])
				}
			}
		}
	}
}

func TestBucketWithoutTimeIsExact(t *testing.T) {
	for _, rate := range []int64{1, 3, 7, 1000} {
		var b bucket
		n := int64(0)
		for b.refill(rate, time.Hour); b.wait(rate) == 0; n++ {
			b.take(1)
		}
		if n != rate {
			t.Errorf("%d at once of %d a second", n, rate)
		}
	}
}

// limiterRig is a limiter with a clock and settings of its own.
type limiterRig struct {
	*limiter
	testing.TB
	time time.Duration
	set  map[interlock.Namespace]interlock.Settings
	read int // how often settings were asked for
}

func newRationed(t testing.TB) *limiterRig {
	r := &limiterRig{TB: t, set: map[interlock.Namespace]interlock.Settings{}}
	r.limiter = &limiter{
		now: func() time.Duration { return r.time },
		settings: func(_ context.Context, ns interlock.Namespace) (interlock.Settings, error) {
			r.read++
			return r.set[ns], nil
		},
	}
	return r
}

func (r *limiterRig) admit(ns interlock.Namespace, principal string, bytes int64, vital bool) *engine.Effect {
	t := r.limits(r.Context(), ns)
	if t == nil {
		return nil
	}
	return t.admit(r.time, principal, amount{requests: 1, bytes: bytes}, vital)
}

// burst counts how many requests come through at once.
func (r *limiterRig) burst(ns interlock.Namespace, principal string, bytes int64) (n int) {
	for n < 10_000 && r.admit(ns, principal, bytes, false) == nil {
		n++
	}
	return n
}

func requests(all, each int) interlock.Settings {
	return interlock.Settings{Quota: interlock.Quota{Requests: all}, PrincipalQuota: interlock.Quota{Requests: each}}
}

func TestQuotaOfTwoTenants(t *testing.T) {
	r := newRationed(t)
	r.set["a"], r.set["b"] = requests(100, 0), requests(50, 0)
	if n := r.burst("a", "", 0); n != 100 {
		t.Errorf("%d of a came through at once, want 100", n)
	}
	if n := r.burst("b", "", 0); n != 50 {
		t.Errorf("%d of b after a had spent all, want 50", n)
	}
	if n := r.burst("free", "", 0); n != 10_000 {
		t.Errorf("%d of a tenant without a quota", n)
	}
	r.time += 100 * time.Millisecond
	if n := r.burst("a", "", 0); n != 10 {
		t.Errorf("%d of a after a tenth of a second, want 10", n)
	}
	if r.read != 3 {
		t.Errorf("settings were read %d times, want once for each namespace", r.read)
	}
}

func TestQuotaOfPrincipals(t *testing.T) {
	r := newRationed(t)
	r.set["a"] = requests(100, 30)
	if n := r.burst("a", "ci", 0); n != 30 {
		t.Errorf("%d of ci, want 30", n)
	}
	if n := r.burst("a", "ops", 0); n != 30 {
		t.Errorf("%d of ops, want 30", n)
	}
	// A request beyond the principal's quota is not taken from the namespace's either.
	if n := r.burst("a", "", 0); n != 40 {
		t.Errorf("%d of nobody, to whom only the namespace's quota applies: want 40", n)
	}
	eff := r.admit("a", "ci", 0, false)
	if eff == nil || eff.Code != interlock.CodeQuota || eff.Conflict.Capacity.Refill != 10*time.Millisecond {
		t.Fatalf("refused with %+v", eff)
	}
	r.time += time.Second
	r.burst("a", "ci", 0)
	if eff := r.admit("a", "ci", 0, false); eff == nil ||
		prose.Sentence(eff.Message) != `the quota of principal "ci" in namespace "a" is 30 requests a second, and that is used up` {
		t.Errorf("refused with %+v", eff)
	}
}

func TestQuotaOfBytes(t *testing.T) {
	r := newRationed(t)
	r.set["a"] = interlock.Settings{Quota: interlock.Quota{Bytes: 1000}}
	if n := r.burst("a", "", 100); n != 10 {
		t.Errorf("%d bodies of 100 bytes, want 10", n)
	}
	if r.admit("a", "", 0, false) != nil {
		t.Error("a request without a body is refused for bytes")
	}
	r.time += time.Second
	// A body may be larger than a second's worth, and is paid for afterwards.
	if r.admit("a", "", 5000, false) != nil {
		t.Error("a large body never comes through")
	}
	eff := r.admit("a", "", 1, false)
	if eff == nil || eff.Conflict.Capacity.Refill != 4*time.Second+time.Millisecond {
		t.Fatalf("after 5000 bytes of 1000 a second: %+v", eff)
	}
	if a := prose.For(eff); a.RetryAfter != eff.Conflict.Capacity.Refill {
		t.Errorf("advice %+v", a)
	}
	r.time += eff.Conflict.Capacity.Refill
	if eff := r.admit("a", "", 1, false); eff != nil {
		t.Errorf("refused at the time that was given: %s", prose.Sentence(eff.Message))
	}
}

// Vital operations always come through, count, and shut nothing out for longer than a second.
func TestVitalIsNeverRefused(t *testing.T) {
	r := newRationed(t)
	r.set["a"] = requests(10, 10)
	for range 1000 {
		if r.admit("a", "ci", 100, true) != nil {
			t.Fatal("a heartbeat was refused")
		}
	}
	eff := r.admit("a", "ci", 0, false)
	if eff == nil || eff.Conflict.Capacity.Refill > time.Second+100*time.Millisecond {
		t.Fatalf("after 1000 heartbeats: %+v", eff)
	}
	if r.time += eff.Conflict.Capacity.Refill; r.admit("a", "ci", 0, false) != nil {
		t.Error("refused at the time that was given")
	}
}

func TestQuotaChanges(t *testing.T) {
	r := newRationed(t)
	r.set["a"] = requests(10, 0)
	r.burst("a", "", 0)
	more, none := requests(100, 0), interlock.Settings{}
	r.configured("a", &more)
	if n := r.burst("a", "", 0); n != 90 {
		t.Errorf("%d more after the quota went from 10 to 100, want 90", n)
	}
	r.configured("a", &none)
	if n := r.burst("a", "", 0); n != 10_000 {
		t.Errorf("%d after the quota was lifted", n)
	}
	r.configured("a", &more)
	if n := r.burst("a", "", 0); n > 100 {
		t.Errorf("%d of 100", n)
	}

	// A change while the settings are being read counts, and not what was read.
	r.limiter.settings = func(context.Context, interlock.Namespace) (interlock.Settings, error) {
		r.configured("b", &more)
		return none, nil
	}
	r.limits(r.Context(), "b")
	if n := r.burst("b", "", 0); n != 100 {
		t.Errorf("%d of b, want 100", n)
	}
}

func TestLimiterForgets(t *testing.T) {
	r := newRationed(t)
	r.set["a"] = requests(0, 1)
	r.burst("a", "first", 0)
	for i := range 2 * maxPrincipals {
		r.admit("a", fmt.Sprint("p", i), 0, false)
	}
	tn := r.limits(r.Context(), "a")
	if n := len(tn.principals); n != maxPrincipals {
		t.Errorf("%d principals are remembered, want %d", n, maxPrincipals)
	}
	if r.admit("a", "one more", 0, false) == nil {
		t.Error("those beyond have no quota at all")
	}
	if r.admit("a", "first", 0, false) == nil {
		t.Error("who has spent all was forgotten")
	}
	r.time += time.Second
	if r.admit("a", "one more", 0, false) != nil || len(tn.principals) > 2 {
		t.Errorf("%d principals after a quiet second", len(tn.principals))
	}

	for i := range 2 * maxTenants {
		r.limits(r.Context(), interlock.Namespace(fmt.Sprint("n", i)))
	}
	if n := r.count.Load(); n > maxTenants {
		t.Errorf("%d namespaces are remembered, want %d at most", n, maxTenants)
	}
	if r.limits(r.Context(), "a") != tn {
		t.Error("a namespace with a quota was forgotten")
	}
}

// The same through the door: the quota counts from the answer of the call that set
// it, and again after a restart.
func TestQuotaAtTheDoor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		s := d.session("worker")
		d.send(d.request("PUT", "/v1/namespace", `{"quota":{"requests_per_s":5}}`)).want(200)
		again := func(namespace string) (n int, last *reply) {
			for {
				last = d.get("/v1/keys/account:1", "Interlock-Namespace", namespace)
				if last.status != 200 || n == 100 {
					return n, last
				}
				n++
			}
		}
		n, last := again("default")
		last.want(429, "quota_exceeded").says("detail", "5 requests a second", `"default"`)
		if n != 5 || last.header.Get("Retry-After") != "1" {
			t.Errorf("%d came through, and Retry-After is %q", n, last.header.Get("Retry-After"))
		}
		if n, _ := again("other"); n != 100 {
			t.Errorf("%d of another namespace", n)
		}
		d.post("/v1/sessions/"+s+"/heartbeat", "").want(200)
		pass(2 * time.Second)
		lease := d.post("/v1/leases", fmt.Sprintf(`{"session":%q,"claims":[{"key":"a"}]}`, s)).want(200).str("lease.id")
		effect := d.post("/v1/effects", `{"tool":"mail","target":"x"}`).want(200).str("effect.id")
		again("default")
		d.post("/v1/effects/"+effect+"/done", "").want(200)
		d.post("/v1/leases", `{"claims":[{"key":"b"}]}`).want(429, "quota_exceeded")
		d.post("/v1/leases/"+lease+"/renew", "").want(200)
		d.post("/v1/leases/"+lease+"/release", "").want(200)

		d.reopen()
		if n, _ := again("default"); n != 5 {
			t.Errorf("%d came through after a restart", n)
		}
		pass(2 * time.Second)
		d.send(d.request("PUT", "/v1/namespace", `{}`)).want(200)
		if n, _ := again("default"); n != 100 {
			t.Errorf("%d came through after the quota was lifted", n)
		}
	})
}

func TestBytesAtTheDoor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.send(d.request("PUT", "/v1/namespace", `{"quota":{"bytes_per_s":100}}`)).want(200)
		body := fmt.Sprintf(`{"claims":[{"key":"a"}],"purpose":"%0150d"}`, 0)
		d.post("/v1/leases", body).want(200)
		d.post("/v1/leases", body).want(429, "quota_exceeded").says("detail", "100 bytes a second")
		d.get("/v1/keys/a").want(200)
		pass(3 * time.Second)
		chunked := d.request("POST", "/v1/leases", body)
		chunked.ContentLength = -1
		d.send(chunked).want(409)
		chunked = d.request("POST", "/v1/leases", body)
		chunked.ContentLength = -1
		d.send(chunked).want(429, "quota_exceeded")
	})
}

func TestPrincipalsAtTheDoor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		d.send(d.request(
			"PUT", "/v1/namespace", `{"principal_quota":{"requests_per_s":1}}`, "Interlock-Namespace", "acme",
		)).want(200)
		for range 3 {
			d.get("/v1/keys/a", "Interlock-Namespace", "acme").want(200) // without credentials there are no principals
		}
		auth := "Bearer " + d.reopenWithCredentials()
		d.get("/v1/keys/a", "Authorization", auth).want(200)
		d.get("/v1/keys/a", "Authorization", auth).want(429, "quota_exceeded").says("detail", "principal")
	})
}
