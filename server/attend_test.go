package server

import (
	"testing"

	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/proto"
)

// countingShard is a shard that carries nothing out, and counts.
type countingShard struct {
	elsewhere
	came uint64
}

func (s *countingShard) Execute(...engine.Command) error { s.came++; return nil }
func (s *countingShard) Came() uint64                    { return s.came }

// spinningLink is a link that reports when it is to attend.
type spinningLink struct {
	proto.ServerLink
	alone func() bool
}

func (l *spinningLink) Ready() (yes, ok bool)    { return false, true }
func (l *spinningLink) Attend(alone func() bool) { l.alone = alone }

// A stream is attended to when it has been alone for a while and brings little, and only until
// others come. Now and then it is not, so that others can be heard.
func TestAttend(t *testing.T) {
	s, link := &countingShard{}, &spinningLink{}
	st := newStream(&Streams{s: &Server{shard: s}}, link, "default", Identity{})
	attended := func(commands int) bool {
		t.Helper()
		link.alone = nil
		if err := st.hand(make([]engine.Command, commands)); err != nil {
			t.Fatal(err)
		}
		if link.alone == nil {
			return false
		}
		if !link.alone() {
			t.Error("it is not alone")
		}
		s.came++
		if link.alone() {
			t.Error("it is alone after others came")
		}
		s.came--
		return true
	}
	for _, company := range []bool{false, true} {
		if company { // between two of its frames
			s.came++
		}
		for i := 1; i <= 4*attendFor; i++ {
			if got, want := attended(1+i%fewCommands), i > attendAfter && i%attendFor != 0; got != want {
				t.Errorf("frame %d of its own in a row: attends %v, want %v", i, got, want)
			}
		}
		if attended(fewCommands + 1) {
			t.Error("it attends after many commands")
		}
	}
}
