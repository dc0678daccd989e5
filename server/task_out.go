package server

import (
	"net/http"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/packet"
	"github.com/interlockdev/interlock/internal/prose"
)

// How tasks, queues and approvals look in JSON. A task's id is no secret: its worker proves itself
// by the lease. Payloads and results are data that must come back as they were, so nothing is
// cleaned out of them.

// writeTask writes a task. Of one that is settled and forgotten only the id is known.
// In a listing the payload and the result are left out.
func (c *call) writeTask(j *jsonOut, name string, t *interlock.Task, whole bool) {
	j.open(name)
	defer j.close()
	j.str("id", t.ID.String())
	if t.State == 0 {
		return
	}
	j.str("queue", t.Queue)
	j.said("kind", t.Kind)
	writeClaims(j, t.Claims)
	if whole && len(t.Payload) > 0 {
		j.value("payload", t.Payload)
	}
	j.said("purpose", t.Purpose)
	j.said("group", t.Group)
	j.int("priority", int64(t.Priority))
	j.str("state", t.State.String())
	j.said("agent", t.Agent)
	j.said("session", t.Session)
	j.said("flow", t.Flow)
	j.said("principal", t.Principal)
	j.said("sender", t.Sender)
	j.ms("age_ms", t.Age)
	j.duration("due_in_ms", t.Due)
	j.duration("deadline_in_ms", t.Deadline)
	j.int("attempt", int64(t.Attempt))
	j.int("max_attempts", int64(t.MaxAttempts))
	if len(t.Attempts) > 0 {
		j.openArray("attempts")
		for i := range t.Attempts {
			writeAttempt(j, "", &t.Attempts[i])
		}
		j.closeArray()
	}
	if t.State == interlock.TaskWaiting {
		j.count("position", uint64(t.Position))
		j.duration("eta_ms", t.ETA)
		if t.Blocker != "" {
			j.str("blocker", string(t.Blocker))
		}
		if t.Barred {
			j.bool("barred", true)
		}
	}
	if t.Approval != nil {
		c.writeApproval(j, t.Approval, whole)
	}
	if whole && len(t.Result) > 0 {
		j.value("result", t.Result)
	}
	j.duration("settled_ms", t.Settled)
	j.said("reason", t.Reason)
}

// writeTaskOf names a task, if there is one.
func writeTaskOf(j *jsonOut, name string, id interlock.TaskID) {
	if !id.IsZero() {
		j.str(name, id.String())
	}
}

// writeApproval writes a question and its answer; whole also what changed since it was
// asked.
func (c *call) writeApproval(j *jsonOut, a *interlock.Approval, whole bool) {
	j.open("approval")
	j.note("question", a.Question)
	j.text("agent", a.Agent)
	j.ms("asked_ms", a.Asked)
	j.duration("left_ms", a.Left)
	if a.OnLimit != 0 {
		j.str("on_limit", a.OnLimit.String())
	}
	j.count("needed", uint64(a.Needed))
	if len(a.Approvals) > 0 {
		j.openArray("approvals")
		for i := range a.Approvals {
			x := &a.Approvals[i]
			j.open("")
			j.text("by", x.By)
			j.said("principal", x.Principal)
			j.said("reason", x.Reason)
			j.close()
		}
		j.closeArray()
	}
	if a.Verdict != 0 {
		j.str("verdict", a.Verdict.String())
		j.said("by", a.By)
		j.said("principal", a.Principal)
		j.said("reason", a.Reason)
	}
	if whole {
		c.writeStale(j, a.Stale, a.StaleMore, packet.Answer)
	}
	j.close()
}

// writeHanded writes a task in a worker's hands.
func (c *call) writeHanded(j *jsonOut, h *interlock.Assignment) {
	j.open("")
	c.writeTask(j, "task", &h.Task, true)
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
	c.writeTask(j, "task", &eff.Tasks[0], true)
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
	c.writeTask(j, "task", &eff.Tasks[0], true)
	j.decimal("version", uint64(eff.Version))
	writeDocuments(j, "documents", eff.Documents, false)
	writeTexts(j, "warnings", prose.Sentences(eff.Warnings))
	writeAdvice(j, prose.For(eff))
	c.send(http.StatusOK, j, at)
}
