package server

import (
	"net/http"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// What persons are asked, and answer. Any principal of the namespace may answer: who
// is asked is for the question to say. Who gives no name answers as the credential's
// principal, and the journal keeps whose credential it was in any case.

// listApprovals is GET /v1/approvals: the tasks that wait for a person.
func (c *call) listApprovals() {
	list := engine.TaskList{Namespace: c.namespace, State: interlock.TaskAsking}
	c.pageOfTasks(&list, "approvals", "tasks")
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
