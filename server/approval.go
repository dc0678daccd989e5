package server

import (
	"net/http"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/internal/prose"
)

// The questions to persons, and their answers. A principal with the right to approve may answer,
// unless it submitted the task, asked or works at it: the engine compares them. The name in the
// body is a claim; the answer and the journal have the credential's principal beside it. Without
// credentials no caller is authenticated, and the answer reports that.

// listApprovals is GET /v1/approvals: the tasks that wait for a person, in the order in
// which they asked, with all that there is to decide from; with the first page, likewise, the
// leases that are parked with a question.
func (c *call) listApprovals() {
	const listing = "approvals"
	var since, num uint64
	limit, ok := c.pageSize()
	if !ok || !c.openPlace(listing, &since, &num) {
		return
	}
	list := engine.Approvals{
		Namespace: c.namespace, Limit: limit, After: engine.AskedAt{Time: engine.Time(since), Num: num},
	}
	leases := engine.LeaseQuestions{Namespace: c.namespace, Limit: limit}
	surveys := []engine.Scan{&list}
	if list.After == (engine.AskedAt{}) {
		surveys = append(surveys, &leases)
	}
	at, ok := c.survey(surveys...)
	if !ok {
		return
	}
	j := c.reply()
	j.openArray("tasks")
	for i := range list.Rows {
		writeTask(j, "", prose.Task(&list.Rows[i]), c, true)
	}
	j.closeArray()
	if len(leases.Rows) > 0 {
		j.openArray("leases")
		for i := range leases.Rows {
			writeLeaseQuestion(j, "", &leases.Rows[i])
		}
		j.closeArray()
	}
	if leases.More {
		j.bool("more_leases", true)
	}
	if list.More {
		j.said("cursor", c.makePlace(listing, uint64(list.Next.Time), list.Next.Num))
	}
	c.send(http.StatusOK, j, at)
}

// courtesy is the warning with an answer to a server that asks for no credentials.
const courtesy = "this approval is a courtesy, not a control: the server asks for no credentials, so anyone on this " +
	"machine, " +
	"agents included, can answer under any name; start it with --credentials to make approvals hold"

// outcomeCounted is the outcome of an approval before the last one of several.
const outcomeCounted = "counted"

// answerApproval is POST /v1/approvals/{id}: of a task, or of a parked lease by its fence.
func (c *call) answerApproval() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.Answer{Head: h}
	if fence, err := parseDecimal(c.variable); err == nil && fence > 0 {
		cmd.Fence = interlock.Fence(fence)
	} else if cmd.Task, ok = c.taskID(); !ok {
		return
	}
	if !c.body(func(d *jsonIn) { decodeAnswer(d, cmd) }) {
		return
	}
	verdict, lease := cmd.Verdict.String(), cmd.Fence != 0 // the engine owns the command once it is submitted
	eff, at, ok := c.do(cmd)
	if !ok {
		return
	}
	if c.identity.Principal == nil {
		eff.Warnings = append(eff.Warnings, message.Plain(courtesy))
	}
	if !lease {
		if verdict == interlock.Approved.String() && eff.Tasks[0].State == interlock.TaskAsking {
			verdict = outcomeCounted
		}
		c.sendTask(http.StatusOK, verdict, &eff, at)
		return
	}
	j := c.reply()
	j.str("outcome", verdict)
	if eff.Question != nil { // else it was answered before, and the lease is not parked any more
		writeLeaseQuestion(j, "lease", eff.Question)
	}
	writeTexts(j, "warnings", prose.Sentences(eff.Warnings))
	c.send(http.StatusOK, j, at)
}
