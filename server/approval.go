package server

import (
	"net/http"

	"github.com/interlockdev/interlock/engine"
)

// What persons are asked, and answer. Any principal of the namespace may answer: who
// is asked is for the question to say. Who gives no name answers as the credential's
// principal, and the journal keeps whose credential it was in any case.

// listApprovals is GET /v1/approvals: the tasks that wait for a person, in the order in
// which they asked, with all that there is to decide from.
func (c *call) listApprovals() {
	const listing = "approvals"
	limit, after, ok := c.pageOfTasks(listing)
	if !ok {
		return
	}
	list := engine.Approvals{Namespace: c.namespace, Limit: limit, After: after}
	if at, ok := c.survey(&list); ok {
		c.sendTasks(list.Rows, true, list.More, listing, at)
	}
}

// answerTask is POST /v1/approvals/{id}.
func (c *call) answerTask() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.Answer{Head: h}
	if cmd.Task, ok = c.taskID(); !ok {
		return
	}
	if !c.body(func(d *jsonIn) { decodeAnswer(d, cmd) }) {
		return
	}
	verdict := cmd.Verdict.String() // the engine owns the command once it is submitted
	if eff, at, ok := c.do(cmd); ok {
		c.sendTask(http.StatusOK, verdict, &eff, at)
	}
}
