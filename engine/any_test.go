package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// anyOf asks for any one of keys.
func (l *load) anyOf(session interlock.SessionID, flow string, keys []interlock.Claim) ([16]byte, *engine.Effect) {
	l.t.Helper()
	c := &engine.Acquire{
		Head: l.head(session), ID: l.id(), LeaseRequest: interlock.LeaseRequest{
			Flow: flow, Claims: keys, Any: true, Terms: interlock.Terms{TTL: time.Hour}, OnConflict: interlock.Wait,
		}, Attach: true,
	}
	return c.ID, l.step(c)
}

func pool(n int) []interlock.Claim {
	claims := make([]interlock.Claim, n)
	for i := range claims {
		claims[i] = interlock.Claim{Key: interlock.Key(fmt.Sprintf("queue/item-%03d", i)), Mode: interlock.Exclusive}
	}
	return claims
}

// Eight agents repeatedly take the next of a thousand items until none is left. Each item has
// one winner; a ninth agent that asks for any of them waits.
func TestNextOfManyHasOneWinner(t *testing.T) {
	t.Parallel()
	const agents, items = 8, 1000
	l := newLoad(t)
	var sessions [agents]interlock.SessionID
	for i := range sessions {
		sessions[i] = l.open(time.Hour)
	}
	all := pool(items)
	winner, won := map[interlock.Key]int{}, [agents]int{}
	for n := range items {
		agent := (n*n + n/agents) % agents
		_, eff := l.anyOf(sessions[agent], fmt.Sprintf("item %d", n), all)
		if eff.Outcome != engine.Granted || len(eff.Lease.Claims) != 1 {
			t.Fatalf("claim %d: %+v", n, eff)
		}
		key := eff.Lease.Claims[0].Key
		if _, taken := winner[key]; taken {
			t.Fatalf("%s was won by agents %d and %d", key, winner[key], agent)
		}
		winner[key] = agent
		won[agent]++
	}
	if _, eff := l.anyOf(l.open(time.Hour), "", all); eff.Outcome != engine.Queued {
		t.Errorf("when all are taken, one more gets %v", eff.Outcome)
	}
	if c := l.e.Counts(); c.Leases != items || c.Waiters != 1 {
		t.Errorf("%d leases and %d waiters, won: %v", c.Leases, c.Waiters, won)
	}
}

// With a thousand waiters for any one of the same keys, each returned key wakes one of them, in
// the order of the line.
func TestOneOfAnyWakesOne(t *testing.T) {
	const keys, waiters = 16, 1000
	l := newLoad(t)
	all := pool(keys)
	s := l.open(time.Hour)
	var held [][16]byte
	for i := range keys {
		id, _ := l.anyOf(s, fmt.Sprint("holder ", i), all)
		held = append(held, id)
	}
	var line [][16]byte
	for i := range waiters {
		id, _ := l.anyOf(s, fmt.Sprint("waiter ", i), all)
		line = append(line, id)
	}
	for i := range line {
		l.step(&engine.Release{Head: l.head(s), Lease: interlock.LeaseID(held[(i*7)%keys])})
		var woken [][16]byte
		for j := range l.out.Events {
			if ev := &l.out.Events[j]; ev.Kind == record.Admitted {
				woken = append(woken, ev.ID)
			}
		}
		if len(woken) != 1 || woken[0] != line[i] {
			t.Fatalf("release %d wakes %d of them", i, len(woken))
		}
		held[(i*7)%keys] = line[i]
	}
	if c := l.e.Counts(); c.Leases != keys || c.Waiters != 0 {
		t.Errorf("%d leases and %d waiters at the end", c.Leases, c.Waiters)
	}
}

// However many alternatives of however long names, the entries stay small.
func TestAlternativesAreBounded(t *testing.T) {
	l := newLoad(t)
	s := l.open(time.Hour)
	long := make([]interlock.Claim, interlock.MaxAlternatives)
	for i := range long {
		long[i].Key = interlock.Key(fmt.Sprintf("%0*d", interlock.MaxKeyBytes, i))
	}
	if _, eff := l.anyOf(s, "", long); eff.Code != interlock.CodeTooManyClaims {
		t.Errorf("%d keys of %d bytes: %v %q", len(long), interlock.MaxKeyBytes, eff.Outcome, eff.Code)
	}
	if _, eff := l.anyOf(
		s, "", append(pool(interlock.MaxAlternatives), interlock.Claim{Key: "one/more"}),
	); eff.Code != interlock.CodeTooManyClaims {
		t.Errorf("%d keys: %v %q", interlock.MaxAlternatives+1, eff.Outcome, eff.Code)
	}
	if _, eff := l.anyOf(s, "", pool(interlock.MaxAlternatives)); eff.Outcome != engine.Granted {
		t.Errorf("%d keys: %v %q", interlock.MaxAlternatives, eff.Outcome, eff.Code)
	}
}

// BenchmarkHandOffAny releases one of many equivalent keys to the first of a line of waiters
// for any of them; the former holder joins the line again.
func BenchmarkHandOffAny(b *testing.B) {
	for _, waiters := range []int{1, 10, 1_000} {
		b.Run(fmt.Sprintf("waiters=%d", waiters), func(b *testing.B) {
			const keys = 8
			s := newStand()
			all := pool(keys)
			type agent struct {
				session interlock.SessionID
				lease   [16]byte
			}
			line := make([]agent, keys+waiters)
			ask := func(a *agent) {
				c := &engine.Acquire{Head: s.head(a.session), ID: s.id(), LeaseRequest: interlock.LeaseRequest{
					Claims: all, Any: true, Terms: interlock.Terms{TTL: interlock.MaxTTL}, OnConflict: interlock.Wait,
				}, Attach: true}
				s.step(c)
				a.lease = c.ID
			}
			for i := range line {
				line[i].session = s.session(b)
				ask(&line[i])
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				a := &line[i%len(line)]
				s.release(a.session, a.lease)
				ask(a)
			}
			s.want(b, engine.Queued)
			perSecond(b, 2*b.N)
		})
	}
}
