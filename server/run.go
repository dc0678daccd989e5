package server

import (
	"encoding/binary"
	"fmt"
	"net/http"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// startRun is POST /v1/runs. The call is the run's place in line: when the caller hangs
// up, nothing is started, and there is no ticket to come back with.
func (c *call) startRun() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.StartRun{Head: h, ID: freshID(), MaxWait: interlock.DefaultRunWait}
	if !c.body(func(d *jsonIn) { decodeRun(d, cmd) }) {
		return
	}
	run, wait, named := interlock.Run{Org: cmd.Org, Workflow: cmd.Workflow}, cmd.MaxWait, h.RequestID != ""
	if wait == 0 {
		if eff, at, ok := c.do(cmd); ok {
			c.started(&run, &eff, at)
		}
		return
	}
	cmd.Attach = true
	last, ok := c.listen(
		cmd, &cmd.Head, wait, func(first *engine.Effect) *longPoll { return inLineFor(first.Ticket.ID, named) },
	)
	switch {
	case !ok:
	case last.eff.Outcome == engine.Refused && last.eff.Code == interlock.CodeTooManyRuns && c.s.isDraining():
		c.refuse(interlock.CodeShuttingDown, "the server is shutting down, and nothing was started: try again in a moment")
	default:
		c.started(&run, &last.eff, last.at)
	}
}

// started answers with the outcome of a start.
func (c *call) started(run *interlock.Run, eff *engine.Effect, at interlock.At) {
	switch eff.Outcome {
	case engine.Granted:
	case engine.Queued: // another call with the same request id has taken the place over
		c.refuse(
			interlock.CodeTooManyRuns,
			"another call with this request id is waiting for the run: it gets the answer",
		)
		return
	default:
		c.refused(eff, at)
		return
	}
	j := c.reply()
	j.str("outcome", "granted")
	j.open("run")
	j.str("id", eff.Lease.ID.String())
	writeRunNames(j, run.Org, run.Workflow)
	writeLease(j, "lease", &eff.Lease)
	j.close()
	writeNotes(j, eff.Lease.Notes)
	writeTexts(j, "warnings", prose.Sentences(eff.Warnings))
	writeAdvice(j, prose.For(eff))
	c.send(http.StatusOK, j, at)
}

func writeRunNames(j *jsonOut, org, workflow string) {
	j.text("org", org)
	j.said("workflow", workflow)
}

// endRun is POST /v1/runs/{id}/end.
func (c *call) endRun() { c.giveBack(&engine.Release{Run: true}, "ended") }

// listRuns is GET /v1/runs.
func (c *call) listRuns() {
	list := engine.RunList{Namespace: c.namespace, Org: c.query.Get("org")}
	limit, ok := c.intParam("limit", 100, 1, 1000)
	if !ok {
		return
	}
	list.Limit = int(limit)
	listing := fmt.Sprintf("runs %q", list.Org)
	after, ok := c.openCursor(listing)
	if !ok {
		return
	}
	if len(after) == 8 {
		list.After = interlock.Fence(binary.BigEndian.Uint64([]byte(after)))
	}
	at, ok := c.survey(&list)
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("runs")
	for i := range list.Rows {
		writeRun(j, "", &list.Rows[i])
	}
	j.closeArray()
	if n := len(list.Rows); list.More && n > 0 {
		var last [8]byte
		binary.BigEndian.PutUint64(last[:], uint64(list.Rows[n-1].Holder.Fence))
		j.str("cursor", c.makeCursor(listing, string(last[:])))
	}
	c.send(http.StatusOK, j, at)
}
