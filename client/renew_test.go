package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/proto"
)

var renewScenarios = []scenario{
	{"a renewal changes the ttl of a lease", func(t *testing.T, s *stage) {
		lease := s.acquire(s.client("a"), client.Request{
			Keys: []interlock.Key{"k"}, Terms: interlock.Terms{TTL: 20 * time.Second},
		})
		fence := lease.Fence()
		for _, c := range []struct{ ask, want time.Duration }{
			{10 * time.Second, 10 * time.Second},
			{0, 10 * time.Second},
			{25 * time.Second, 25 * time.Second},
			{time.Hour, time.Hour}, // the session has no ttl of its own
		} {
			s.renew(lease, c.ask, c.want)
		}
		if err := lease.Renew(s.ctx, client.Renewal{TTL: time.Millisecond}); !isCode(err, interlock.CodeInvalidTTL) {
			t.Errorf("a ttl of a millisecond: %v", err)
		}
		if lease.Err() != nil || lease.Fence() != fence {
			t.Errorf("%v, fence %d was %d", lease.Err(), lease.Fence(), fence)
		}
		s.release(lease, "")
		if err := lease.Renew(s.ctx, client.Renewal{TTL: time.Minute}); !isCode(err, interlock.CodeReleased) {
			t.Errorf("a released lease: %v", err)
		}
	}},
}

// renew asks for a ttl, and checks the one that the lease has then.
func (s *stage) renew(lease *client.Lease, ask, want time.Duration) {
	s.t.Helper()
	if err := lease.Renew(s.ctx, client.Renewal{TTL: ask}); err != nil {
		s.t.Fatal(err)
	}
	if info := lease.Info(); info.TTL != want || lease.Left() > want {
		s.t.Errorf("renewed with %v, it has a ttl of %v and %v left, want %v", ask, info.TTL, lease.Left(), want)
	}
}

// A lease with a ttl that is shorter than the time since the last heartbeat is good nevertheless, and
// gets as many heartbeats as it needs.
func TestShorterTTLInALongSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, c := broken(t, inMemory(t), client.Config{Agent: "a", SessionTTL: time.Hour})
		lease := s.acquire(c, exclusively("k"))
		<-time.After(5 * time.Minute)
		s.renew(lease, time.Second, time.Second)
		<-time.After(time.Minute)
		if lease.Err() != nil {
			t.Fatal(lease.Err())
		}
		s.release(lease, "")
	})
}

// A lease survives a break of the connection that is shorter than the ttl of its renewal, and is
// lost by the client's own clock in a longer one.
func TestTTLOfARenewalCountsHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a", SessionTTL: time.Hour})
		lease := s.acquire(c, client.Request{Keys: []interlock.Key{"k"}, Terms: interlock.Terms{TTL: 5 * time.Second}})
		s.renew(lease, 5*time.Minute, 5*time.Minute)
		unblock := b.block()
		b.cut()
		<-time.After(time.Minute)
		unblock()
		s.renew(lease, 10*time.Second, 10*time.Second)
		unblock = b.block()
		defer unblock()
		b.cut()
		cut := time.Now()
		<-lease.Context().Done()
		if lived := time.Since(cut); lived > 10*time.Second {
			t.Errorf("lost after %v", lived)
		}
	})
}

// A renewal with an answer that is lost is carried out once.
func TestLostAnswerOfARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, c := broken(t, inMemory(t), client.Config{Agent: "a", SessionTTL: time.Hour})
		lease := s.acquire(c, exclusively("k"))
		b.setLose(answers(proto.Granted, func(r *proto.Reply) bool { return r.Lease.TTL == 2*time.Second }))
		s.renew(lease, 2*time.Second, 2*time.Second)
		<-time.After(time.Minute)
		if lease.Err() != nil {
			t.Fatal(lease.Err())
		}
		s.release(lease, "")
	})
}
