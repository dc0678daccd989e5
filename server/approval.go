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
	var since, num uint64
	limit, ok := c.pageSize()
	if !ok || !c.openPlace(listing, &since, &num) {
		return
	}
	list := engine.Approvals{Namespace: c.namespace, Limit: limit, After: engine.AskedAt{Time: engine.Time(since), Num: num}}
	if at, ok := c.survey(&list); ok {
		cursor := ""
		if list.More {
			cursor = c.makePlace(listing, uint64(list.Next.Time), list.Next.Num)
		}
		c.sendTasks(list.Rows, true, cursor, at)
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
