package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/proto"
)

// held connects a client to a server of a script, and has it acquire a lease that ends after five seconds.
func held(t *testing.T) (s *script, c *client.Client, lease *client.Lease, granted interlock.Lease) {
	t.Helper()
	s = &script{t: t, links: make(chan proto.ServerLink, 1)}
	granted = interlock.Lease{
		ID: [16]byte{2}, Fence: 1, TTL: interlock.DefaultTTL, MaxHoldIn: 5 * time.Second,
		Claims: []interlock.Claim{{Key: "k", Mode: interlock.Exclusive}},
	}
	go func() {
		s.answer(s.next(proto.OpOpen))
		s.answer(s.next(proto.OpAttach))
		op := s.next(proto.OpAcquire)
		s.say(proto.Reply{Slot: op.Slot, Seq: op.Seq, Outcome: proto.Granted, Lease: granted})
	}()
	c, err := client.New(t.Context(), s.Dial, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if lease, err = c.Acquire(t.Context(), exclusively("k")); err != nil {
		t.Fatal(err)
	}
	return s, c, lease, granted
}

// A request under a lease that runs out meanwhile, and that the client releases, is refused because of that. The
// error is why the lease was lost, and not what the client did after that.
func TestRefusalAfterALossTellsTheLoss(t *testing.T) {
	type call = func(context.Context, *client.Lease) error
	renew := func(ctx context.Context, l *client.Lease) error { return l.Renew(ctx, client.Renewal{}) }
	convert := func(ctx context.Context, l *client.Lease) error {
		return l.Convert(ctx, client.Conversion{Claims: on("k")})
	}
	park := func(ctx context.Context, l *client.Lease) error { return l.Park(ctx, client.ParkRequest{}) }
	commit := func(ctx context.Context, l *client.Lease) error {
		_, err := l.Commit(ctx, client.Commit{})
		return err
	}
	arrive := func(ctx context.Context, l *client.Lease) error { return l.Arrive(ctx, client.Arrival{}) }
	released := proto.Reply{Outcome: proto.Refused, Code: interlock.CodeReleased, Message: "released by its holder"}
	for _, c := range []struct {
		name  string
		kind  proto.OpKind
		do    call
		reply proto.Reply
	}{
		{"renew", proto.OpRenew, renew, released},
		{"renew/done", proto.OpRenew, renew, proto.Reply{Outcome: proto.Granted}},
		{"convert", proto.OpConvert, convert, released},
		{"convert/done", proto.OpConvert, convert, proto.Reply{Outcome: proto.Granted}},
		{"arrive", proto.OpArrive, arrive, released},
		{"park", proto.OpPark, park, released},
		{"park/done", proto.OpPark, park, proto.Reply{Outcome: proto.Done}},
		{"commit", proto.OpCommit, commit, released},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, connected, lease, granted := held(t)
				go func() {
					op := s.next(c.kind)
					s.answer(s.next(proto.OpRelease)) // of the keeper
					reply := c.reply
					reply.Slot, reply.Seq = op.Slot, op.Seq
					if reply.Outcome == proto.Granted {
						reply.Lease = granted
					}
					s.say(reply)
					s.answer(s.next(proto.OpClose))
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := c.do(ctx, lease); !isCode(err, interlock.CodeExpired) {
					t.Fatalf("%v", err)
				}
				if err := lease.Release(ctx, client.Outcome{}); !isCode(err, interlock.CodeExpired) {
					t.Errorf("its release: %v", err)
				}
				closeClient(t, connected)
			})
		})
	}
}

// A release that finds the lease over, by the server's verdict, leaves that as the reason.
func TestReleaseOfALostLeaseKeepsTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, lease, _ := held(t)
		go func() {
			op := s.next(proto.OpRelease)
			s.say(proto.Reply{Slot: op.Slot, Seq: op.Seq, Outcome: proto.Refused, Code: interlock.CodeRevoked})
			s.answer(s.next(proto.OpClose))
		}()
		if err := lease.Release(t.Context(), client.Outcome{}); !isCode(err, interlock.CodeRevoked) {
			t.Errorf("its release: %v", err)
		}
		if err := lease.Err(); !isCode(err, interlock.CodeRevoked) {
			t.Errorf("after it: %v", err)
		}
		closeClient(t, c)
	})
}
