package engine_test

import (
	"bytes"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// An unattributed engine writes the same journal, and its events say nothing about patterns
// and groups.
func TestUnattributed(t *testing.T) {
	play := func(e *engine.Engine) (journal []byte, counted int) {
		s := &stage{T: t, e: e}
		step := func(cmd engine.Command) {
			s.step(0, cmd)
			journal = append(journal, s.out.Entry...)
			for i := range s.out.Events {
				ev := &s.out.Events[i]
				if len(ev.Patterns()) > 0 {
					counted++
				} else if ev.Claimants() != "" {
					t.Errorf("%v has a group and no pattern", ev.Kind)
				}
			}
		}
		step(&engine.Recover{Epoch: 1})
		h := engine.Head{Namespace: "acme"}
		step(&engine.SetPattern{Head: h, Pattern: interlock.Pattern{Name: "account", Shape: "account:{id}"}})
		a := s.acquire(h, "account:1")
		a.Group = "red"
		step(a)
		step(&engine.Release{Head: h, Lease: a.ID})
		return journal, counted
	}
	with, counted := play(engine.New())
	if counted != 2 {
		t.Errorf("%d events have patterns, want those of the grant and of the end", counted)
	}
	without, counted := play(engine.New(engine.Unattributed))
	if counted != 0 {
		t.Errorf("%d events of an unattributed engine have patterns", counted)
	}
	if !bytes.Equal(with, without) {
		t.Error("the option changes what is journaled")
	}
}
