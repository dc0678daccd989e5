package server

import (
	"net/http"

	"github.com/interlockdev/interlock/engine"
)

// What persons are asked, and answer. A principal with the right to approve may answer,
// unless it submitted the task, asked or works at it: the engine compares them. The name
// in the body is a claim; the answer and the journal have the credential's principal
// beside it. Without credentials nobody is authenticated, and the answer says so.

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

// courtesy is the warning with an answer to a server that asks for no credentials.
const courtesy = "this approval is a courtesy, not a control: the server asks for no credentials, so anyone on this machine, " +
	"agents included, can answer under any name; start it with --credentials to make approvals hold"

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
		if c.identity.Principal == nil {
			eff.Warnings = append(eff.Warnings, courtesy)
		}
		c.sendTask(http.StatusOK, verdict, &eff, at)
	}
}
