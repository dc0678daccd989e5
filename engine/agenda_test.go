package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// stage is a bare engine that accepts the commands of namespaces in any order.
type stage struct {
	*testing.T
	e   *engine.Engine
	out engine.Output
	ids uint64
}

func newStage(t *testing.T) *stage {
	s := &stage{T: t, e: engine.New()}
	s.step(0, &engine.Recover{Epoch: 1})
	return s
}

// step carries out a command at a time after the beginning, and returns its answer.
func (s *stage) step(after time.Duration, cmd engine.Command) *engine.Effect {
	s.Helper()
	h := cmd.Header()
	h.At = begin.Add(after)
	if h.From == nil {
		h.From = s
	}
	s.out = engine.Output{}
	s.e.Step(cmd, &s.out)
	if err := sameEvents(s.out.Entry, s.out.Events); err != nil {
		s.Fatal(err)
	}
	for i := range s.out.Effects {
		if s.out.Effects[i].To == engine.Caller(s) {
			return &s.out.Effects[i]
		}
	}
	return nil
}

func (s *stage) open(ns interlock.Namespace, ttl time.Duration) engine.Head {
	s.Helper()
	s.ids++
	h := engine.Head{Namespace: ns}
	s.step(0, &engine.OpenSession{Head: h, ID: counted(s.ids), Agent: "agent", TTL: ttl})
	h.Session = counted(s.ids)
	return h
}

func (s *stage) acquire(h engine.Head, key interlock.Key) *engine.Acquire {
	s.ids++
	return &engine.Acquire{
		Head: h, ID: counted(s.ids), LeaseRequest: interlock.LeaseRequest{
			Terms:  interlock.Terms{Grace: engine.NoGrace},
			Claims: []interlock.Claim{{Key: key, Mode: interlock.Exclusive}},
		},
	}
}

// A namespace's time is that of its own commands: a heartbeat that is delayed behind another
// namespace's commands loses nothing.
func TestTimesOfNamespaces(t *testing.T) {
	s := newStage(t)
	a, b := s.open("a", 10*time.Second), s.open("b", 10*time.Second)
	s.step(0, s.acquire(a, "x"))
	s.step(0, s.acquire(b, "x"))

	s.step(9*time.Second, &engine.Heartbeat{Head: b})
	s.step(30*time.Second, s.acquire(b, "y")) // much later, and of b alone
	for _, ev := range s.out.Events {
		if ev.Namespace != "b" {
			t.Errorf("a step of b has an event of %s: %v", ev.Namespace, ev.Kind)
		}
	}
	if eff := s.step(9*time.Second, &engine.Heartbeat{Head: a}); eff.Outcome != engine.Done || len(eff.Losses) > 0 {
		t.Fatalf("a's heartbeat came in time: %v %s, %d losses", eff.Outcome, prose.Sentence(eff.Message), len(eff.Losses))
	}
	if eff := s.step(9*time.Second, s.acquire(b, "z")); eff.Code != interlock.CodeSessionEnded {
		t.Errorf("b's time went back: %v %s", eff.Outcome, eff.Code)
	}

	due := map[interlock.Namespace]bool{}
	s.e.DueBy(begin.Add(19*time.Second), func(ns interlock.Namespace) { due[ns] = true })
	if !due["a"] || due["b"] {
		t.Errorf("due are %v, want a alone", due)
	}
	s.step(19*time.Second, &engine.Tick{Head: engine.Head{Namespace: "a"}})
	if eff := s.step(19*time.Second, &engine.Heartbeat{Head: a}); eff.Code != interlock.CodeSessionEnded {
		t.Errorf("a's session outlived its ttl: %v %s", eff.Outcome, eff.Code)
	}
	if at, ok := s.e.NextTimer(); ok {
		t.Errorf("something is due at %v, and nothing is left", since(at))
	}
}

// Work that one step could not finish is done by steps of the same namespace, however many of
// others come between.
func TestNobodyCarriesAnothersWork(t *testing.T) {
	s := newStage(t)
	const leases = 5000
	noisy := s.open("noisy", time.Hour)
	for i := range leases {
		s.step(0, s.acquire(noisy, interlock.Key(fmt.Sprintf("key:%d", i))))
	}
	s.step(0, &engine.CloseSession{Head: noisy})
	if at, ok := s.e.Due("noisy"); !ok || at > s.e.Now() {
		t.Fatal("one step ended everything: the test tests nothing")
	}
	for i := range 100 {
		quiet := engine.Head{Namespace: "quiet"}
		if eff := s.step(
			time.Second, s.acquire(quiet, interlock.Key(fmt.Sprintf("key:%d", i))),
		); eff.Outcome != engine.Granted {
			t.Fatal(eff.Outcome, prose.Sentence(eff.Message))
		}
		if len(s.out.Events) != 1 {
			t.Fatalf("a step of quiet has %d events, want 1", len(s.out.Events))
		}
	}
	for ticks := 0; ; ticks++ {
		if at, ok := s.e.Due("noisy"); !ok || at > s.e.Now() {
			break
		}
		if ticks > leases {
			t.Fatal("it never ends")
		}
		s.step(time.Second, &engine.Tick{Head: engine.Head{Namespace: "noisy"}})
	}
	if c := s.e.Counts(); c.Leases != 100 {
		t.Errorf("%d leases are left, want those of quiet", c.Leases)
	}
}
