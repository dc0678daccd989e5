package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/prose"
)

// refusedWith fails unless the last step was refused with a code and a message, and wrote
// nothing to the journal.
func (s *stand) refusedWith(t *testing.T, code interlock.Code) {
	t.Helper()
	if len(s.out.Effects) != 1 || s.out.Effects[0].Outcome != engine.Refused || s.out.Effects[0].Code != code {
		t.Fatalf("want a refusal with %s, got %+v", code, s.out.Effects)
	}
	if prose.Sentence(s.out.Effects[0].Message) == "" {
		t.Errorf("the refusal with %s says nothing", code)
	}
	if len(s.out.Entry) > 0 {
		t.Errorf("the refusal with %s is journaled: %+v", code, s.out.Events)
	}
}

// TestTextLimits goes to the limit of every text, and one byte beyond.
func TestTextLimits(t *testing.T) {
	s := newStand()
	id := s.session(t)
	acquire := func(change func(c *engine.Acquire)) {
		c := &engine.Acquire{Head: s.head(id), ID: s.id(), LeaseRequest: interlock.LeaseRequest{
			Claims: []interlock.Claim{{Key: "k"}},
		}}
		change(c)
		s.step(c)
	}
	lease := s.acquire(id, "held")
	fence := s.out.Effects[0].Lease.Fence
	cases := []struct {
		name  string
		limit int
		code  interlock.Code
		ok    interlock.Outcome
		do    func(text string)
	}{
		{"key", interlock.MaxKeyBytes, interlock.CodeInvalidKey, engine.Granted, func(x string) {
			acquire(func(c *engine.Acquire) { c.Claims[0].Key = interlock.Key(x) })
		}},
		{"namespace", interlock.MaxNamespaceBytes, interlock.CodeInvalidNamespace, engine.Granted, func(x string) {
			acquire(func(c *engine.Acquire) {
				c.Namespace, c.Session = interlock.Namespace(x), interlock.SessionID{}
			})
		}},
		{"agent", interlock.MaxNameBytes, interlock.CodeTooLong, engine.Granted, func(x string) {
			acquire(func(c *engine.Acquire) {
				c.Agent, c.Session, c.Claims[0].Key = x, interlock.SessionID{}, "of an anonymous one"
			})
		}},
		{"flow", interlock.MaxNameBytes, interlock.CodeTooLong, engine.Granted, func(x string) {
			acquire(func(c *engine.Acquire) { c.Flow, c.Claims[0].Key = x, "of a flow" })
		}},
		{"purpose", interlock.MaxPurposeBytes, interlock.CodeTooLong, engine.Granted, func(x string) {
			acquire(func(c *engine.Acquire) { c.Purpose = x })
		}},
		{"request id", interlock.MaxRequestIDBytes, interlock.CodeTooLong, engine.Granted, func(x string) {
			acquire(func(c *engine.Acquire) { c.RequestID = x })
		}},
		{"session's agent", interlock.MaxNameBytes, interlock.CodeTooLong, engine.Done, func(x string) {
			s.step(&engine.OpenSession{Head: s.head(interlock.SessionID{}), ID: interlock.SessionID(s.id()), Agent: x})
		}},
		{"heartbeat's progress", interlock.MaxProgressBytes, interlock.CodeTooLong, engine.Done, func(x string) {
			s.step(&engine.Heartbeat{Head: s.head(id), Progress: x})
		}},
		{"renewal's progress", interlock.MaxProgressBytes, interlock.CodeTooLong, engine.Granted, func(x string) {
			s.step(&engine.Renew{Head: s.head(id), Lease: interlock.LeaseID(lease), Progress: x})
		}},
		{"reason", interlock.MaxReasonBytes, interlock.CodeTooLong, engine.Refused, func(x string) {
			s.step(&engine.Revoke{Head: s.head(id), Key: "held", Fence: fence + 1000, Reason: x})
		}},
		{"outcome", interlock.MaxNameBytes, interlock.CodeTooLong, engine.Done, func(x string) {
			s.step(&engine.Release{Head: s.head(id), Lease: interlock.LeaseID(s.acquire(id, "outcome")), Outcome: x})
		}},
		{"note", interlock.MaxNoteBytes, interlock.CodeTooLong, engine.Done, func(x string) {
			s.step(&engine.Release{Head: s.head(id), Lease: interlock.LeaseID(s.acquire(id, "note")), Note: x})
		}},
		{"action", interlock.MaxActionBytes, interlock.CodeTooLong, engine.Done, func(x string) {
			s.step(&engine.ClaimEffect{Head: s.head(id), ID: s.id(), Action: x})
		}},
		{"effect's agent", interlock.MaxNameBytes, interlock.CodeTooLong, engine.Done, func(x string) {
			s.step(&engine.ClaimEffect{Head: s.head(id), ID: s.id(), Action: "of an agent", Agent: x})
		}},
		{"effect's flow", interlock.MaxNameBytes, interlock.CodeTooLong, engine.Done, func(x string) {
			s.step(&engine.ClaimEffect{Head: s.head(id), ID: s.id(), Action: "of a flow", Flow: x})
		}},
		{"result", interlock.MaxResultBytes, interlock.CodeTooLong, engine.Done, func(x string) {
			s.settleEffect(s.claimEffect(fmt.Sprint("with a result", len(x))), interlock.EffectDone, `"`+x[2:]+`"`)
		}},
		{"effect's reason", interlock.MaxReasonBytes, interlock.CodeTooLong, engine.Done, func(x string) {
			s.step(&engine.SettleEffect{Head: s.head(id), ID: s.claimEffect(fmt.Sprint("with a reason", len(x))), Reason: x})
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.do(strings.Repeat("x", c.limit))
			s.want(t, c.ok)
			if s.out.Effects[0].Code == c.code {
				t.Errorf("%d bytes are refused: %v", c.limit, prose.Sentence(s.out.Effects[0].Message))
			}
			c.do(strings.Repeat("x", c.limit+1))
			s.refusedWith(t, c.code)
		})
	}
}

// TestClaimLimit: a request has up to 64 claims.
func TestClaimLimit(t *testing.T) {
	s := newStand()
	id := s.session(t)
	var claims []interlock.Claim
	for i := range interlock.MaxClaims {
		claims = append(claims, interlock.Claim{Key: interlock.Key(fmt.Sprintf("k%d", i))})
	}
	s.step(&engine.Acquire{Head: s.head(id), ID: s.id(), LeaseRequest: interlock.LeaseRequest{Claims: claims}})
	s.want(t, engine.Granted)
	s.step(&engine.Acquire{Head: s.head(id), ID: s.id(), LeaseRequest: interlock.LeaseRequest{
		Claims: append(claims, interlock.Claim{Key: "one more"}),
	}})
	s.refusedWith(t, interlock.CodeTooManyClaims)
}

// TestLineLimit: the line of a key ends at its limit, that of a namespace at its own; a refused
// request may come again when a place is free.
func TestLineLimit(t *testing.T) {
	s := newStand()
	holder := s.session(t)
	key := func(i int) interlock.Key { return interlock.Key(fmt.Sprintf("k%d", i)) }
	var first [16]byte
	for i := range interlock.MaxWaiters / interlock.MaxWaitersPerKey {
		s.acquire(holder, key(i))
		for n := range interlock.MaxWaitersPerKey {
			id := s.acquire(interlock.SessionID{}, key(i))
			if i == 0 && n == 0 {
				first = id
			}
		}
		s.want(t, engine.Queued)
		s.acquire(interlock.SessionID{}, key(i))
		s.refusedWith(t, interlock.CodeTooManyWaiters)
	}
	// The namespace is full now, also for a key without a line.
	s.acquire(holder, "elsewhere")
	s.want(t, engine.Granted)
	s.acquire(interlock.SessionID{}, "elsewhere")
	s.refusedWith(t, interlock.CodeTooManyWaiters)
	if got := s.e.Counts().Waiters; got != interlock.MaxWaiters {
		t.Errorf("%d waiters, want %d", got, interlock.MaxWaiters)
	}
	// Another namespace has room.
	other := engine.Acquire{Head: s.head(interlock.SessionID{}), ID: s.id(), LeaseRequest: interlock.LeaseRequest{
		Claims: []interlock.Claim{{Key: "k0"}},
	}}
	other.Namespace = "other"
	s.step(&other)
	s.want(t, engine.Granted)
	// One goes, one may come.
	s.step(&engine.Leave{Head: s.head(interlock.SessionID{}), Ticket: interlock.TicketID(first)})
	s.acquire(interlock.SessionID{}, "k0")
	s.want(t, engine.Queued)
}

// TestSessionLimit: a namespace has at most MaxSessions.
func TestSessionLimit(t *testing.T) {
	s := newStand()
	var last interlock.SessionID
	for range interlock.MaxSessions {
		last = s.session(t)
	}
	open := &engine.OpenSession{Head: s.head(interlock.SessionID{}), ID: interlock.SessionID(s.id()), Agent: "late"}
	s.step(open)
	s.refusedWith(t, interlock.CodeTooManySessions)
	s.step(&engine.CloseSession{Head: s.head(last)})
	s.session(t)
}

// TestLeaseLimit: a namespace has at most MaxLeases.
func TestLeaseLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("needs 600 MB for a million leases")
	}
	s := newStand()
	id := s.session(t)
	var last [16]byte
	for i := range interlock.MaxLeases {
		last = s.acquire(id, interlock.Key(fmt.Sprintf("k%d", i)))
	}
	s.want(t, engine.Granted)
	s.acquire(id, "one more")
	s.refusedWith(t, interlock.CodeTooManyLeases)
	s.release(id, last)
	s.acquire(id, "one more")
	s.want(t, engine.Granted)
}

// TestHerd: a thousand waiters and one release wake exactly one.
func TestHerd(t *testing.T) {
	s := newStand()
	holder := s.session(t)
	lease := s.acquire(holder, "k")
	for range 1_000 {
		s.acquire(interlock.SessionID{}, "k")
	}
	s.release(holder, lease)
	if len(s.out.Events) != 2 || s.out.Events[1].Kind != record.Admitted || len(s.out.Effects) != 2 {
		t.Errorf(
			"one release made %d events and told %d, want the end, one grant and their two answers", len(s.out.Events),
			len(s.out.Effects),
		)
	}
}

// TestManyWaitsOfOneFlow: a flow may have thousands of waits. A grant to it costs a
// search through them, but nothing looks at each of them for each of them;
// otherwise this test would not come to an end.
func TestManyWaitsOfOneFlow(t *testing.T) {
	const waits = 3_000
	s := newStand()
	holder, waiter := s.session(t), s.session(t)
	var leases [][16]byte
	for i := range waits {
		key := interlock.Key(fmt.Sprintf("k%d", i))
		leases = append(leases, s.acquire(holder, key))
		s.acquire(waiter, key)
		s.want(t, engine.Queued)
	}
	for _, lease := range leases {
		s.release(holder, lease)
		s.want(t, engine.Done)
	}
	if c := s.e.Counts(); c.Leases != waits || c.Waiters != 0 {
		t.Errorf("want %d leases and no waiter, got %+v", waits, c)
	}
}

// TestManyEndTogether: ten thousand leases that are due at once end in steps that each fit a
// journal's append, and their keys pass to the waiters.
func TestManyEndTogether(t *testing.T) {
	const leases = 10_000
	s := newStand()
	for i := range leases {
		key := interlock.Key(fmt.Sprintf("k%d", i))
		s.step(&engine.Acquire{
			Head: s.head(interlock.SessionID{}), ID: s.id(), Agent: strings.Repeat("a", interlock.MaxNameBytes), LeaseRequest: interlock.LeaseRequest{
				Claims: []interlock.Claim{{Key: key}},
				Terms:  interlock.Terms{TTL: 10 * time.Second, Grace: engine.NoGrace},
			},
		})
		s.want(t, engine.Granted)
		s.acquire(interlock.SessionID{}, key)
		s.want(t, engine.Queued)
	}
	s.now = s.now.Add(10 * time.Second)
	steps, ended, granted := 0, 0, 0
	for {
		timer, ok := s.e.NextTimer()
		if !ok || timer > s.now {
			break
		}
		if steps++; steps > leases {
			t.Fatal("it never comes to an end")
		}
		s.step(&engine.Tick{Head: engine.Head{At: s.now}})
		if len(s.out.Entry) > 900_000 {
			t.Fatalf("an entry of %d bytes: a journal takes 1,000,000", len(s.out.Entry))
		}
		for i := range s.out.Events {
			switch s.out.Events[i].Kind {
			case record.Ended:
				ended++
			case record.Admitted:
				granted++
			}
		}
	}
	if ended != leases || granted != leases {
		t.Errorf("%d ended and %d were granted, want %d each", ended, granted, leases)
	}
	t.Logf("%d steps", steps)
}

// TestRestartSpreads: ten thousand sessions that stay silent after a restart do not end
// together, and none before its full ttl.
func TestRestartSpreads(t *testing.T) {
	const sessions = 10_000
	const ttl = 40 * time.Second
	s := newStand()
	for range sessions {
		id := interlock.SessionID(s.id())
		s.step(&engine.OpenSession{Head: s.head(interlock.SessionID{}), ID: id, Agent: "agent", TTL: ttl})
	}
	s.now = s.now.Add(30 * time.Second)
	s.step(&engine.Recover{Head: engine.Head{At: s.now}, Epoch: 2})
	from, total := s.now, 0
	var slices [10]int // of the quarter in which they end
	for {
		timer, ok := s.e.NextTimer()
		if !ok {
			break
		}
		s.now = max(s.now, timer)
		s.step(&engine.Tick{Head: engine.Head{At: s.now}})
		for i := range s.out.Events {
			if s.out.Events[i].Kind != record.SessionEnded {
				continue
			}
			after := s.now.Sub(from) - ttl
			if after < 0 || after > ttl/4 {
				t.Fatalf("a session ended %v after the restart", s.now.Sub(from))
			}
			slices[min(int(after*10/(ttl/4)), 9)]++
			total++
		}
	}
	if total != sessions {
		t.Errorf("%d sessions ended, want %d", total, sessions)
	}
	for i, n := range slices {
		if n < sessions/20 || n > sessions/5 {
			t.Errorf("%d sessions ended in tenth %d of the time, want about %d", n, i+1, sessions/10)
		}
	}
}

// TestQuietHour: an hour of heartbeats alone writes nothing to the journal, and neither do
// queries.
func TestQuietHour(t *testing.T) {
	s := newStand()
	var ids []interlock.SessionID
	var leases [][16]byte
	for i := range 20 {
		id := interlock.SessionID(s.id())
		s.step(&engine.OpenSession{Head: s.head(interlock.SessionID{}), ID: id, Agent: "agent"})
		ids = append(ids, id)
		c := &engine.Acquire{Head: s.head(id), ID: s.id(), LeaseRequest: interlock.LeaseRequest{
			Claims: []interlock.Claim{{Key: interlock.Key(fmt.Sprintf("k%d", i))}},
		}}
		s.step(c)
		leases = append(leases, c.ID)
	}
	s.acquire(ids[0], "k1")
	ticket := counted(s.ids)
	quiet := func(cmd engine.Command) {
		t.Helper()
		s.step(cmd)
		if len(s.out.Entry) > 0 || len(s.out.Events) > 0 {
			t.Fatalf("%T was journaled: %+v", cmd, s.out.Events)
		}
	}
	for end := s.now.Add(time.Hour); s.now < end; s.now = s.now.Add(10 * time.Second) {
		for i, id := range ids {
			quiet(&engine.Heartbeat{Head: s.head(id), Progress: "going on"})
			quiet(&engine.Renew{Head: s.head(id), Lease: interlock.LeaseID(leases[i])})
			quiet(&engine.GetLease{Head: s.head(id), Lease: interlock.LeaseID(leases[i])})
			quiet(&engine.CheckFence{Head: s.head(id), Key: "k1", Fence: 2})
			quiet(&engine.Attach{Head: s.head(id)})
			quiet(&engine.Detach{Head: s.head(id)})
		}
		quiet(&engine.Poll{Head: s.head(ids[0]), Ticket: interlock.TicketID(ticket)})
		quiet(&engine.Tick{Head: engine.Head{At: s.now}})
	}
}
