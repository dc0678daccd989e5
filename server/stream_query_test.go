package server_test

import (
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/server"
)

// A query sees what came before it on its stream, also in the same frame, and
// needs no session.
func TestQueriesComeInTheOrderOfTheStream(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	f := d.dial()
	f.open(1)
	f.send(
		proto.Op{
			Kind: proto.OpSetPattern, Slot: 1, Seq: 1, Pattern: &interlock.Pattern{Name: "b", Shape: "b:{x}", Capacity: 2},
		},
		proto.Op{Kind: proto.OpListPatterns, Slot: 1, Seq: 2},
		proto.Op{Kind: proto.OpSetPattern, Slot: 1, Seq: 3, Pattern: &interlock.Pattern{Name: "a", Shape: "a:{x}"}},
		proto.Op{Kind: proto.OpListPatterns, Seq: 4},
		proto.Op{Kind: proto.OpListPatterns, Seq: 5, Name: "a"},
		proto.Op{Kind: proto.OpConfigure, Slot: 1, Seq: 6, Settings: &interlock.Settings{NearMisses: true}},
		proto.Op{Kind: proto.OpGetSettings, Seq: 7},
		proto.Op{Kind: proto.OpDropPattern, Slot: 1, Seq: 8, Name: "a"},
	)
	names := func(r proto.Reply) (text string) {
		for _, p := range r.Patterns {
			text += p.Name
		}
		return text
	}
	lists := map[uint64]string{2: "b", 4: "ab", 5: "b"}
	for seq := uint64(1); seq <= 8; seq++ {
		r := f.want(seq, proto.Done, "")
		if r.Index == 0 || names(r) != lists[seq] || r.More {
			t.Errorf("answer %d: %+v", seq, r)
		}
		if seq == 7 && (r.Settings == nil || !r.Settings.NearMisses) {
			t.Errorf("settings %+v", r.Settings)
		}
	}
	f.send(proto.Op{Kind: proto.OpListPatterns, Slot: 2, Seq: 9}) // no session is bound to it
	f.want(9, proto.Refused, interlock.CodeUnknownSession)
}
