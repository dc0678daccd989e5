package server

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// How the words look in JSON. Ids are written by the answers to their holder
// alone (writeLease, writeTicket, writeSession); everything else here may be seen
// by anybody in the namespace.

// parkedKeys returns the treatment of the keys of a parked lease.
func parkedKeys(p *interlock.ParkStatus) string {
	if p.Freed {
		return "freed"
	}
	return "kept"
}

func writeClaims(j *jsonOut, claims []interlock.Claim) {
	j.openArray("claims")
	for i := range claims {
		writeClaim(j, "", &claims[i])
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
		writeNote(j, "", &notes[i])
	}
	j.closeArray()
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

// writeConflict writes the part about blockers that refusals and answers to waiters share.
func writeConflict(j *jsonOut, c *engine.Conflict) {
	if c.Key != "" {
		j.text("key", string(c.Key)) // in a refusal it may be no key at all
	}
	if c.Kind != "" {
		j.str("conflict_kind", string(c.Kind))
	}
	if c.Capacity != nil {
		writeCapacity(j, "capacity", c.Capacity)
	}
}
