package engine_test

import (
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// A grant and its release allocate nothing, once all structures have grown to their size. The
// remaining allocations are for the answers.
func TestCycleAllocatesNothing(t *testing.T) {
	s := newStand()
	id := s.session(t)
	claims := append(distinct(64, "account:%d"), distinct(64, "order:%d/lines")...)
	s.settle(id, claims)
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		i++
		lease := s.ask(id, claims[i%len(claims)])
		s.want(t, engine.Granted)
		s.release(id, lease)
		s.want(t, engine.Done)
	}); n != 0 {
		t.Errorf("%v allocations a cycle", n)
	}
	if len(s.out.Entry) == 0 {
		t.Error("a release was not journaled")
	}
}

// A release and the grant that it causes allocate nothing either.
func TestGrantAllocatesNothing(t *testing.T) {
	s := newStand()
	id := s.session(t)
	s.settle(id, distinct(64, "account:%d"))
	const waiters = 1000
	claims := distinct(1, "account:%d/balance")[0]
	var line [waiters + 1]struct {
		session interlock.SessionID
		id      [16]byte
	}
	for i := range line {
		line[i].session = s.session(t)
		s.release(line[i].session, s.acquire(line[i].session, "warm"))
		line[i].id = s.ask(line[i].session, claims)
	}
	i := 0
	if n := testing.AllocsPerRun(waiters-100, func() {
		s.release(line[i].session, line[i].id)
		if len(s.out.Effects) != 2 {
			t.Fatalf("a release has the effects %+v", s.out.Effects)
		}
		i++
	}); n != 0 {
		t.Errorf("%v allocations a grant", n)
	}
}
