package server

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// How the words look in JSON. Ids are written by the answers to their holder
// alone (writeLease, writeTicket, writeSession); everything else here may be seen
// by anybody in the namespace.

func writeLease(j *jsonOut, name string, l *interlock.Lease) {
	j.open(name)
	j.str("id", l.ID.String())
	j.decimal("fence", uint64(l.Fence))
	writeClaims(j, l.Claims)
	j.open("holder")
	j.text("agent", l.Agent)
	j.str("session", l.Session)
	j.text("flow", l.Flow)
	j.close()
	j.text("purpose", l.Purpose)
	j.ms("ttl_ms", l.TTL)
	j.ms("grace_ms", max(l.Grace, 0))
	j.ms("expires_in_ms", l.ExpiresIn)
	if l.MaxHoldIn > 0 {
		j.ms("max_hold_in_ms", l.MaxHoldIn)
	}
	j.str("state", l.State.String())
	j.close()
}

func writeClaims(j *jsonOut, claims []interlock.Claim) {
	j.openArray("claims")
	for i := range claims {
		j.open("")
		j.str("key", string(claims[i].Key))
		j.str("mode", claims[i].Mode.String())
		j.close()
	}
	j.closeArray()
}

func writeNotes(j *jsonOut, notes []interlock.Note) {
	j.openArray("notes")
	for i := range notes {
		n := &notes[i]
		j.open("")
		j.str("key", string(n.Key))
		j.text("agent", n.Agent)
		j.decimal("fence", uint64(n.Fence))
		j.text("outcome", n.Outcome)
		j.note("text", n.Text)
		j.ms("age_ms", n.Age)
		j.close()
	}
	j.closeArray()
}

func writeTicket(j *jsonOut, t *interlock.Ticket) {
	j.open("ticket")
	j.str("id", t.ID.String())
	j.int("position", int64(t.Position))
	j.int("length", int64(t.Length))
	j.ms("eta_ms", t.ETA)
	j.close()
}

func writeSession(j *jsonOut, s *engine.Session) {
	j.open("session")
	j.str("id", s.ID.String())
	j.str("name", s.Name)
	j.text("agent", s.Agent)
	j.ms("ttl_ms", s.TTL)
	j.ms("expires_in_ms", s.ExpiresIn)
	j.close()
}

func writeHolders(j *jsonOut, holders []interlock.Holder, more int) {
	j.openArray("holders")
	for i := range holders {
		writeHolder(j, &holders[i])
	}
	j.closeArray()
	if more > 0 {
		j.int("more_holders", int64(more))
	}
}

func writeHolder(j *jsonOut, h *interlock.Holder) {
	j.open("")
	writeParty(j, h.Agent, h.Session, h.Flow)
	j.text("purpose", h.Purpose)
	j.str("key", string(h.Key))
	j.str("mode", h.Mode.String())
	j.decimal("fence", uint64(h.Fence))
	j.str("liveness", h.Liveness.String())
	j.ms("heartbeat_age_ms", h.HeartbeatAge)
	j.ms("held_ms", h.Held)
	j.ms("expires_in_ms", h.ExpiresIn)
	j.text("progress", h.Progress)
	j.close()
}

// writeParty writes who somebody is, as others see it. session is the public
// name, never the id.
func writeParty(j *jsonOut, agent, session, flow string) {
	j.text("agent", agent)
	j.str("session", session)
	j.text("flow", flow)
}

func writeCycleStep(j *jsonOut, c *interlock.CycleStep) {
	j.open("")
	writeParty(j, c.Agent, c.Session, c.Flow)
	j.str("key", string(c.Key))
	j.str("mode", c.Mode.String())
	j.bool("victim", c.Victim)
	j.close()
}
