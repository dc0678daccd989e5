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
	j.duration("max_hold_in_ms", l.MaxHoldIn)
	j.duration("stall_in_ms", l.StallIn)
	j.duration("lock_delay_ms", l.LockDelay)
	j.said("group", l.Group)
	j.str("state", l.State.String())
	j.said("ended_by", l.EndedBy)
	if len(l.Moved) > 0 {
		j.openArray("moved")
		for _, key := range l.Moved {
			j.str("", string(key))
		}
		j.closeArray()
	}
	if l.Yield != nil {
		writeYield(j, l.Yield)
	}
	if l.Parking != nil {
		writeParking(j, l.Parking)
	}
	writeDecision(j, l.Decision)
	j.count("generation", l.Generation)
	if len(l.Parts) > 0 {
		j.openArray("parts")
		for i := range l.Parts {
			writePart(j, &l.Parts[i])
		}
		j.closeArray()
	}
	j.close()
}

// writeYield writes the party that asks the holder to yield.
func writeYield(j *jsonOut, y *interlock.Yield) {
	j.open("yield")
	writeParty(j, y.Agent, y.Session, y.Flow)
	j.text("purpose", y.Purpose)
	j.int("priority", int64(y.Priority))
	j.ms("since_ms", y.Since)
	j.bool("revoked", y.Revoked)
	j.close()
}

func writeParking(j *jsonOut, p *interlock.ParkStatus) {
	j.open("parking")
	j.text("reason", p.Reason)
	j.ms("since_ms", p.Since)
	j.ms("left_ms", p.Left)
	j.str("keys", parkedKeys(p))
	j.close()
}

// parkedKeys returns what becomes of the keys of a parked lease.
func parkedKeys(p *interlock.ParkStatus) string {
	if p.Freed {
		return "freed"
	}
	return "kept"
}

// writeDecision writes a person's word on a parked lease, if there is one.
func writeDecision(j *jsonOut, d *interlock.Decision) {
	if d == nil {
		return
	}
	j.open("decision")
	j.str("verdict", d.Verdict.String())
	j.said("by", d.By)
	j.said("principal", d.Principal)
	j.said("reason", d.Reason)
	j.close()
}

func writePart(j *jsonOut, p *interlock.Part) {
	j.open("")
	j.str("key", string(p.Key))
	j.str("lease", p.Lease.String())
	j.decimal("fence", uint64(p.Fence))
	j.bool("stop", p.Stop)
	j.duration("left_ms", p.Left)
	j.close()
}

func writeClaims(j *jsonOut, claims []interlock.Claim) {
	j.openArray("claims")
	for i := range claims {
		j.open("")
		j.str("key", string(claims[i].Key))
		writeMode(j, claims[i].Mode, claims[i].Count)
		j.close()
	}
	j.closeArray()
}

// writeMode writes a mode, and the count that goes with it.
func writeMode(j *jsonOut, m interlock.Mode, count uint32) {
	j.str("mode", m.String())
	if m.Counts() && count > 0 {
		j.int(countField(m), int64(count))
	}
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
		writeHolder(j, "", &holders[i])
	}
	j.closeArray()
	if more > 0 {
		j.int("more_holders", int64(more))
	}
}

func writeHolder(j *jsonOut, name string, h *interlock.Holder) {
	j.open(name)
	writeParty(j, h.Agent, h.Session, h.Flow)
	j.text("purpose", h.Purpose)
	j.str("key", string(h.Key))
	writeMode(j, h.Mode, h.Count)
	j.decimal("fence", uint64(h.Fence))
	j.str("liveness", h.Liveness.String())
	j.ms("heartbeat_age_ms", h.HeartbeatAge)
	j.ms("held_ms", h.Held)
	j.ms("expires_in_ms", h.ExpiresIn)
	j.text("progress", h.Progress)
	j.said("ended_by", h.EndedBy)
	if h.Yield != nil {
		writeYield(j, h.Yield)
	}
	if h.Parking != nil {
		writeParking(j, h.Parking)
	}
	j.close()
}

// writeParty writes a party, as others see it. session is the public name, never the id.
func writeParty(j *jsonOut, agent, session, flow string) {
	j.text("agent", agent)
	j.str("session", session)
	j.text("flow", flow)
}

func writeCapacity(j *jsonOut, c *interlock.Capacity) {
	j.open("capacity")
	if c.Permits > 0 {
		j.int("permits", int64(c.Permits))
		j.int("used", int64(c.Used))
	}
	if len(c.Groups) > 0 {
		j.openArray("groups")
		for i := range c.Groups {
			g := &c.Groups[i]
			j.open("")
			j.text("name", g.Name)
			j.int("used", int64(g.Used))
			j.int("min", int64(g.Min))
			j.count("max", uint64(g.Max))
			j.close()
		}
		j.closeArray()
	}
	if c.Tokens > 0 {
		j.int("tokens", int64(c.Tokens))
		j.int("available", int64(c.Available))
		j.duration("refill_ms", c.Refill)
	}
	j.close()
}

// writeConflict writes what both a refusal and an answer to a waiter contain about its blockers.
func writeConflict(j *jsonOut, c *engine.Conflict) {
	if c.Key != "" {
		j.text("key", string(c.Key)) // in a refusal it may be no key at all
	}
	if c.Kind != "" {
		j.str("conflict_kind", string(c.Kind))
	}
	if c.Capacity != nil {
		writeCapacity(j, c.Capacity)
	}
}

func writeCycleStep(j *jsonOut, c *interlock.CycleStep) {
	j.open("")
	writeParty(j, c.Agent, c.Session, c.Flow)
	j.str("key", string(c.Key))
	j.str("mode", c.Mode.String())
	j.bool("victim", c.Victim)
	j.str("next", c.Next.String())
	j.close()
}
