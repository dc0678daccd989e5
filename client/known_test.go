package client_test

import (
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/proto"
)

// A heartbeat tells which leases the client knows of, and lists them if the server asks: also one with a release on
// its way.
func TestHeartbeatTellsKnownLeases(t *testing.T) { synctest.Test(t, heartbeatTellsKnownLeases) }

func heartbeatTellsKnownLeases(t *testing.T) {
	s := &script{t: t, links: make(chan proto.ServerLink, 1)}
	granted := interlock.Lease{
		ID: [16]byte{2}, Fence: 1, TTL: interlock.DefaultTTL,
		Claims: []interlock.Claim{{Key: "k", Mode: interlock.Exclusive}},
	}
	counted := interlock.KnownLeases{}
	counted.Add(granted.ID)
	listed := counted
	listed.Listed, listed.Leases = true, []interlock.LeaseID{granted.ID}
	releasing, closing, finished := make(chan struct{}), make(chan struct{}), make(chan struct{})
	next := func(want interlock.KnownLeases, wantsList bool) {
		op := s.next(proto.OpHeartbeat)
		if got := op.Known; got == nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("the client knows of %+v, want %+v", got, want)
		}
		s.say(proto.Reply{Slot: op.Slot, Seq: op.Seq, Outcome: proto.Done, WantsList: wantsList})
	}
	go func() {
		defer close(finished)
		s.answer(s.next(proto.OpOpen))
		s.answer(s.next(proto.OpAttach))
		op := s.next(proto.OpAcquire)
		s.say(proto.Reply{Slot: op.Slot, Seq: op.Seq, Outcome: proto.Granted, Lease: granted})
		next(counted, true)
		next(listed, false)
		next(counted, false)
		releasing <- struct{}{}
		op = s.next(proto.OpRelease)
		next(counted, false)
		s.say(proto.Reply{Slot: op.Slot, Seq: op.Seq, Outcome: proto.Done})
		next(interlock.KnownLeases{}, false)
		close(closing)
		s.answer(s.next(proto.OpClose))
	}()
	c, err := client.New(t.Context(), s.Dial, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := c.Acquire(t.Context(), exclusively("k"))
	if err != nil {
		t.Fatal(err)
	}
	<-releasing
	if err := lease.Release(t.Context(), client.Outcome{}); err != nil {
		t.Error(err)
	}
	<-closing
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	<-finished
}
