package server

import (
	"context"
	"encoding/json"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/packet"
)

// packet makes the packet about what has changed. That may compare a MiB of bodies, so
// it waits until there is a processor for it. The shard must not wait for that: it is
// for the goroutine that answers.
func (s *Server) packet(
	ns interlock.Namespace, stale []interlock.Stale, more bool, occasion packet.Occasion,
) *interlock.Packet {
	_ = s.comparing.Enter(context.Background(), ns) // each turn comes: the work is short
	defer s.comparing.Leave()
	return packet.New(stale, more, occasion)
}

// writeStale writes the packet about what has changed since it was read, if anything
// has.
func (c *call) writeStale(j *jsonOut, stale []interlock.Stale, more bool, occasion packet.Occasion) {
	if len(stale) > 0 {
		writePacket(j, "packet", c.s.packet(c.namespace, stale, more, occasion))
	}
}

// writeDifference writes the change of a body. A patch is JSON itself; what is cut
// is whole up to there.
func writeDifference(j *jsonOut, c *interlock.Change) {
	j.open("diff")
	j.str("kind", c.Diff.Kind.String())
	switch text := c.Diff.Text; {
	case c.Diff.Kind == interlock.JSONPatch && json.Valid([]byte(text)):
		j.value("patch", []byte(text))
	case text != "":
		j.note("text", text)
	}
	if c.Diff.Kind == interlock.SizesOnly {
		j.int("then_bytes", int64(c.Then.Size))
		j.int("now_bytes", int64(c.Now.Size))
	}
	if c.Diff.Cut {
		j.bool("cut", true)
	}
	j.close()
}
