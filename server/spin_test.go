package server

import (
	"testing"

	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/proto"
)

// countingShard is a shard that carries nothing out, and counts.
type countingShard struct {
	noShard
	came uint64
}

func (s *countingShard) Execute(...engine.Command) error { s.came++; return nil }
func (s *countingShard) Came() uint64                    { return s.came }

// spinningLink is a link that reports when it is to spin.
type spinningLink struct {
	proto.ServerLink
	exclusive func() bool
}

func (l *spinningLink) Ready() (yes, ok bool)      { return false, true }
func (l *spinningLink) Spin(exclusive func() bool) { l.exclusive = exclusive }

// A stream's reads spin when it has been alone for a while and brings little, and only until
// others come. Now and then they do not, so that others can be heard.
func TestSpin(t *testing.T) {
	s, link := &countingShard{}, &spinningLink{}
	st := newStream(&Streams{s: &Server{shard: s}}, link, "default", Identity{})
	spins := func(commands int) bool {
		t.Helper()
		link.exclusive = nil
		if err := st.hand(make([]engine.Command, commands)); err != nil {
			t.Fatal(err)
		}
		if link.exclusive == nil {
			return false
		}
		if !link.exclusive() {
			t.Error("it is not alone")
		}
		s.came++
		if link.exclusive() {
			t.Error("it is alone after others came")
		}
		s.came--
		return true
	}
	for _, company := range []bool{false, true} {
		if company { // between two of its frames
			s.came++
		}
		for i := 1; i <= 4*spinFrames; i++ {
			if got, want := spins(1+i%fewCommands), i > spinAfter && i%spinFrames != 0; got != want {
				t.Errorf("frame %d of its own in a row: spins %v, want %v", i, got, want)
			}
		}
		if spins(fewCommands + 1) {
			t.Error("it spins after many commands")
		}
	}
}
