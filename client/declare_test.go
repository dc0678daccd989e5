package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// Waits for another agent, which only their declaration makes known.
var declareScenarios = []scenario{
	{"a declared wait is part of a deadlock", func(t *testing.T, s *stage) {
		a, b := s.client("a"), s.client("b")
		x := s.acquire(a, client.Request{Keys: []interlock.Key{"x"}, Flow: "one"})
		place := s.wait(b, client.Request{Keys: []interlock.Key{"x"}, Flow: "two", OnConflict: interlock.Wait, Priority: 1})
		place.queued()
		_, err := a.WaitFor(x.Context(), client.WaitTarget{Agent: "b", Purpose: "the test's result"})
		refusal, ok := errors.AsType[*interlock.Error](err)
		if !ok || refusal.Code != interlock.CodeDeadlock || len(refusal.Cycle) != 2 {
			t.Fatalf("got %+v", err)
		}
		s.release(x, "")
		place.granted()
	}},
	{"a declared wait that another one makes a deadlock of ends", func(t *testing.T, s *stage) {
		a, b := s.client("a"), s.client("b")
		x := s.acquire(a, client.Request{Keys: []interlock.Key{"x"}, Flow: "one"})
		wait, err := a.WaitFor(x.Context(), client.WaitTarget{Session: b.SessionName(), Flow: "two"})
		if err != nil {
			t.Fatal(err)
		}
		place := s.wait(b, client.Request{Keys: []interlock.Key{"x"}, Flow: "two", OnConflict: interlock.Wait, Priority: 1})
		await(t, wait.Context().Done(), "the end of the wait")
		if err := context.Cause(wait.Context()); !isCode(err, interlock.CodeDeadlock) {
			t.Errorf("cause %v", err)
		}
		wait.End()
		s.release(x, "")
		place.granted()
	}},
	{"a declared wait that has ended is in nobody's way", func(t *testing.T, s *stage) {
		a, b := s.client("a"), s.client("b")
		x := s.acquire(a, client.Request{Keys: []interlock.Key{"x"}, Flow: "one"})
		wait, err := a.WaitFor(x.Context(), client.WaitTarget{Agent: "b"})
		if err != nil {
			t.Fatal(err)
		}
		wait.End()
		wait.End()
		if wait.Context().Err() == nil {
			t.Error("its context goes on")
		}
		_ = a.CheckFence(s.ctx, "x", 1) // its answer comes after the line was left
		place := s.wait(b, client.Request{Keys: []interlock.Key{"x"}, Flow: "two", OnConflict: interlock.Wait})
		place.queued()
		s.release(x, "")
		place.granted()
	}},
	{"a declared wait for somebody who is gone", func(t *testing.T, s *stage) {
		a, b := s.client("a"), s.client("b")
		if _, err := a.WaitFor(s.ctx, client.WaitTarget{Agent: "nobody"}); !isCode(err, interlock.CodeUnknownSession) {
			t.Errorf("got %v", err)
		}
		wait, err := a.WaitFor(s.ctx, client.WaitTarget{Agent: "b"})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(s.ctx); err != nil {
			t.Error(err)
		}
		await(t, wait.Context().Done(), "the end of the wait")
		if err := context.Cause(wait.Context()); !isCode(err, interlock.CodeSessionEnded) {
			t.Errorf("cause %v", err)
		}
		wait.End()
		s.acquire(a, exclusively("k")) // it is the other's session that ended
	}},
}

func TestDeclaredWaitSurvivesReconnect(t *testing.T) {
	s, b, c := broken(t, inMemory(t), client.Config{Agent: "a"})
	x := s.acquire(c, client.Request{Keys: []interlock.Key{"x"}, Flow: "one"})
	other := s.client("b")
	wait, err := c.WaitFor(x.Context(), client.WaitTarget{Agent: "b"})
	if err != nil {
		t.Fatal(err)
	}
	b.cut()
	if err := c.CheckFence(s.ctx, "x", x.Fence()); err != nil {
		t.Error(err)
	}
	place := s.wait(
		other, client.Request{Keys: []interlock.Key{"x"}, Flow: "two", OnConflict: interlock.Wait, Priority: 1},
	)
	await(t, wait.Context().Done(), "the end of the wait")
	if err := context.Cause(wait.Context()); !isCode(err, interlock.CodeDeadlock) {
		t.Errorf("cause %v", err)
	}
	wait.End()
	s.release(x, "")
	place.granted()
}
