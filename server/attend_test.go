package server

import (
	"testing"

	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/proto"
)

// counting is a shard that carries nothing out, and counts.
type counting struct {
	elsewhere
	came uint64
}

func (s *counting) Execute(...engine.Command) error { s.came++; return nil }
func (s *counting) Came() uint64                    { return s.came }

// attending is a link that says when it is to attend.
type attending struct {
	proto.ServerLink
	alone func() bool
}

func (l *attending) Ready() (yes, ok bool)    { return false, true }
func (l *attending) Attend(alone func() bool) { l.alone = alone }

// A stream is attended to when it alone brings little, and only until others come.
func TestAttend(t *testing.T) {
	s, link := &counting{}, &attending{}
	st := newStream(&Streams{s: &Server{shard: s}}, link, "default", Identity{})
	for _, step := range []struct {
		what     string
		others   uint64
		commands int
		attend   bool
	}{
		{"alone", 0, 1, true},
		{"alone again, with two commands", 0, 2, true},
		{"after somebody else", 1, 1, false},
		{"alone once more", 0, 1, true},
		{"with much", 0, 3, false},
	} {
		link.alone = nil
		s.came += step.others
		if err := st.hand(make([]engine.Command, step.commands)); err != nil {
			t.Fatal(err)
		}
		if link.alone != nil != step.attend {
			t.Errorf("%s: attends %v, want %v", step.what, link.alone != nil, step.attend)
		}
		if link.alone == nil {
			continue
		}
		if !link.alone() {
			t.Errorf("%s: it is not alone", step.what)
		}
		s.came++
		if link.alone() {
			t.Errorf("%s: it is alone after others came", step.what)
		}
		s.came--
	}
}
