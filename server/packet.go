package server

import (
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
	s.comparing.enter(ns)
	defer s.comparing.leave()
	return packet.New(stale, more, occasion)
}

// writeStale writes the packet about what has changed since it was read, if anything
// has.
func (c *call) writeStale(j *jsonOut, stale []interlock.Stale, more bool, occasion packet.Occasion) {
	if len(stale) > 0 {
		writePacket(j, c.s.packet(c.namespace, stale, more, occasion))
	}
}

// writePacket writes what has changed. The message is made for a prompt; the rest is
// cleaned here like all that agents wrote.
func writePacket(j *jsonOut, p *interlock.Packet) {
	j.open("packet")
	j.openArray("stale")
	for i := range p.Changes {
		c := &p.Changes[i]
		j.open("")
		j.text("key", string(c.Now.Key))
		writeThen(j, &c.Then, c.Known)
		writeNow(j, &c.Now)
		j.count("writes", uint64(c.Writes))
		writeBetween(j, c, func(j *jsonOut, i int) { writeVersion(j, &c.Between[i]) })
		writeDifference(j, c)
		j.close()
	}
	j.closeArray()
	j.bool("more", p.More)
	j.note("message", p.Message)
	j.close()
}

// writeThen writes a document as it was read: its version, and the rest if it is
// still known.
func writeThen(j *jsonOut, d *interlock.Document, known bool) {
	j.open("then")
	j.decimal("version", uint64(d.Version))
	switch {
	case d.Absent:
		j.bool("absent", true)
	case known:
		j.text("content_type", d.ContentType)
		j.int("size", int64(d.Size))
	}
	j.close()
}

// writeNow writes a document as it is, and its author.
func writeNow(j *jsonOut, d *interlock.Document) {
	j.open("now")
	writeVersion(j, d)
	j.close()
}

// writeBetween writes the authors of a document before the last one, and how many others there were
// before those.
func writeBetween(j *jsonOut, c *interlock.Change, write func(j *jsonOut, i int)) {
	if len(c.Between) > 0 {
		j.openArray("between")
		for i := range c.Between {
			j.open("")
			write(j, i)
			j.close()
		}
		j.closeArray()
	}
	j.count("more_between", uint64(c.Left))
}

// writeVersion writes one version of a document, and its author.
func writeVersion(j *jsonOut, d *interlock.Document) {
	writeState(j, d)
	writeAge(j, d)
}

// writeDifference writes what changed in a body. A patch is JSON itself; what is cut
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
