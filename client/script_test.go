package client_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/proto"
)

// script is a server that answers as a test tells it, one operation at a time.
type script struct {
	t     *testing.T
	links chan proto.ServerLink
	link  proto.ServerLink
	ops   []proto.Op
}

func (s *script) Dial(context.Context, proto.Hello) (proto.ClientLink, error) {
	theirs, ours := proto.Pipe()
	s.links <- ours
	return theirs, nil
}

// next returns the client's next operation, which must be of this kind. Heartbeats before it
// are answered.
func (s *script) next(kind proto.OpKind) proto.Op {
	s.t.Helper()
	for {
		op := s.read()
		if op.Kind == proto.OpHeartbeat && kind != proto.OpHeartbeat {
			s.answer(op)
			continue
		}
		if op.Kind != kind {
			s.t.Errorf("operation %d came instead of %d: %+v", op.Kind, kind, op)
		}
		return op
	}
}

func (s *script) read() proto.Op {
	s.t.Helper()
	for len(s.ops) == 0 {
		if s.link == nil {
			s.link = <-s.links
		}
		var frame proto.ClientFrame
		if err := s.link.Recv(&frame); err != nil {
			s.t.Error(err)
			return proto.Op{}
		}
		s.ops = append(s.ops, frame.Ops...)
	}
	op := s.ops[0]
	s.ops = s.ops[1:]
	return op
}

func (s *script) say(replies ...proto.Reply) {
	s.t.Helper()
	if err := s.link.Send(&proto.ServerFrame{Epoch: 1, Replies: replies}); err != nil {
		s.t.Error(err)
	}
}

// answer reports an operation as done.
func (s *script) answer(op proto.Op) {
	s.t.Helper()
	s.say(proto.Reply{
		Slot: op.Slot, Seq: op.Seq, Outcome: proto.Done, Session: &proto.Session{ID: [16]byte{1}, TTL: interlock.DefaultTTL},
	})
}

func (s *script) cut() {
	s.link.Close(nil)
	s.link, s.ops = nil, nil
}

// A wait may be granted by a push while the poll for it is still under way. The
// poll's answer then means nothing, above all not to a later call.
func TestGrantedBeforeThePollIsAnswered(t *testing.T) {
	synctest.Test(t, grantedBeforeThePollIsAnswered) // the pauses before a reconnect cost nothing
}

func grantedBeforeThePollIsAnswered(t *testing.T) {
	s := &script{t: t, links: make(chan proto.ServerLink, 1)}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		s.answer(s.next(proto.OpOpen))
		s.answer(s.next(proto.OpAttach))
		for i := range 50 {
			id := [16]byte{2, byte(i)}
			lease := interlock.Lease{
				ID: id, Fence: interlock.Fence(i + 1), TTL: interlock.DefaultTTL,
				Claims: []interlock.Claim{{Key: "k", Mode: interlock.Exclusive}},
			}
			op := s.next(proto.OpAcquire)
			s.say(proto.Reply{
				Slot: op.Slot, Seq: op.Seq, Outcome: proto.Queued, Ticket: &interlock.Ticket{ID: id, Position: 1, Length: 1},
			})
			s.cut()
			s.answer(s.next(proto.OpAttach))
			poll := s.next(proto.OpPoll)
			s.say(proto.Reply{Slot: poll.Slot, Outcome: proto.Granted, Lease: lease})
			release := s.next(proto.OpRelease)
			s.say(proto.Reply{Slot: poll.Slot, Seq: poll.Seq, Outcome: proto.Granted, Lease: lease})
			s.answer(release)
		}
		s.answer(s.next(proto.OpClose))
	}()
	c, err := client.New(context.Background(), s.Dial, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		lease, err := c.Acquire(context.Background(), exclusively("k"))
		if err != nil {
			t.Fatal(err)
		}
		if lease.Fence() != interlock.Fence(i+1) {
			t.Fatalf("fence %d in round %d", lease.Fence(), i)
		}
		if err := lease.Release(context.Background(), client.Outcome{}); err != nil {
			t.Fatal(err)
		}
	}
	closeClient(t, c)
	<-finished
}

// A lease that has ended before its conversion came cannot be converted, and is not asked
// for again and again.
func TestConversionOfALeaseThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, links: make(chan proto.ServerLink, 1)}
		finished := make(chan struct{})
		codes := []interlock.Code{interlock.CodeExpired, interlock.CodeTaken, interlock.CodeUnknownLease}
		go func() {
			defer close(finished)
			s.answer(s.next(proto.OpOpen))
			s.answer(s.next(proto.OpAttach))
			op := s.next(proto.OpAcquire)
			lease := interlock.Lease{
				ID: [16]byte{2}, Fence: 1, TTL: interlock.DefaultTTL,
				Claims: []interlock.Claim{{Key: "k", Mode: interlock.Exclusive}},
			}
			s.say(proto.Reply{Slot: op.Slot, Seq: op.Seq, Outcome: proto.Granted, Lease: lease})
			for _, code := range codes {
				op := s.next(proto.OpConvert)
				s.say(proto.Reply{Slot: op.Slot, Seq: op.Seq, Outcome: proto.Refused, Code: code})
			}
			s.answer(s.next(proto.OpClose))
		}()
		c, err := client.New(context.Background(), s.Dial, client.Config{})
		if err != nil {
			t.Fatal(err)
		}
		lease, err := c.Acquire(context.Background(), exclusively("k"))
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range codes {
			if err := lease.Convert(context.Background(), client.Conversion{Claims: on("k")}); !isCode(err, code) {
				t.Errorf("%s: %v", code, err)
			}
		}
		closeClient(t, c)
		<-finished
	})
}
