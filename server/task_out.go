package server

import (
	"net/http"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// How tasks, queues and approvals look in JSON. A task's id is no secret: its worker proves itself
// by the lease. Payloads and results are data that must come back as they were, so nothing is
// cleaned out of them.

// writeHanded writes a task in a worker's hands.
func (c *call) writeHanded(j *jsonOut, h *engine.Assignment) {
	j.open("")
	writeTask(j, "task", prose.Task(&h.Task), c, true)
	writeLease(j, "lease", &h.Lease)
	j.bool("changed", h.Lease.Changed)
	writeNotes(j, h.Lease.Notes)
	writeEvidence(j, h.Documents)
	j.decimal("as_of", uint64(h.AsOf))
	j.close()
}

// sendTask answers with the task that an effect is about.
func (c *call) sendTask(status int, outcome string, eff *engine.Effect, at interlock.At) {
	c.sendTaskAdvised(status, outcome, eff, prose.For(eff), at)
}

// sendTaskAdvised is sendTask where something else is to be advised.
func (c *call) sendTaskAdvised(
	status int, outcome string, eff *engine.Effect, advice interlock.Advice, at interlock.At,
) {
	j := c.reply()
	if outcome != "" {
		j.str("outcome", outcome)
	}
	writeTask(j, "task", prose.Task(&eff.Tasks[0]), c, true)
	writeTexts(j, "warnings", prose.Sentences(eff.Warnings))
	writeAdvice(j, advice)
	c.send(status, j, at)
}

// taskDone is the name of the state done, used as the outcome.
var taskDone = interlock.TaskDone.String()

// acknowledged answers with all that came of an acknowledgement.
func (c *call) acknowledged(eff *engine.Effect, at interlock.At) {
	j := c.reply()
	j.str("outcome", taskDone)
	writeTask(j, "task", prose.Task(&eff.Tasks[0]), c, true)
	j.decimal("version", uint64(eff.Version))
	writeDocuments(j, "documents", eff.Documents, false)
	writeTexts(j, "warnings", prose.Sentences(eff.Warnings))
	writeAdvice(j, prose.For(eff))
	c.send(http.StatusOK, j, at)
}
