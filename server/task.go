package server

import (
	"fmt"
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/internal/prose"
)

// createTask is POST /v1/tasks.
func (c *call) createTask() {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.Submit{Head: h}
	cmd.Task.ID, cmd.Task.Trace = freshID(), c.traceparent()
	var wait time.Duration
	if !c.body(func(d *jsonIn) { wait = decodeSubmit(d, cmd) }) {
		return
	}
	if eff, at, ok := c.submitted(cmd, wait); ok {
		status, outcome := http.StatusAccepted, "submitted"
		if eff.Tasks[0].State == interlock.TaskDone {
			status, outcome = http.StatusOK, taskDone
		}
		c.sendTask(status, outcome, &eff, at)
	}
}

// submitted has a task submitted, and waits for its end if it is to. ok is false when
// the call was answered.
func (c *call) submitted(cmd *engine.Submit, wait time.Duration) (eff engine.Effect, at interlock.At, ok bool) {
	if wait <= 0 {
		return c.do(cmd)
	}
	cmd.Attach = true
	flow := cmd.Flow
	last, ok := c.listen(cmd, &cmd.Head, wait, func(first *engine.Effect) *longPoll { return untilSettled(first, flow) })
	if !ok {
		return eff, at, false
	}
	if eff = settledFor(last.eff); eff.Outcome == engine.Refused {
		c.refused(&eff, last.at)
		return eff, at, false
	}
	return eff, last.at, true
}

// untilSettled waits for the end of a task that runs or is to run.
func untilSettled(first *engine.Effect, flow string) *longPoll {
	if len(first.Tasks) == 0 {
		return nil
	}
	id := first.Tasks[0].ID
	follow := func(h engine.Head, attach bool) engine.Command {
		return &engine.FollowTask{Head: h, Flow: flow, Task: id, Attach: attach}
	}
	detach := func(h engine.Head) engine.Command { return &engine.Detach{Head: h, Ticket: interlock.TicketID(id)} }
	return &longPoll{
		open:   func(eff *engine.Effect) bool { return eff.Outcome == engine.Done && !isSettled(&eff.Tasks[0]) },
		again:  func(h engine.Head) engine.Command { return follow(h, true) },
		last:   func(h engine.Head) engine.Command { return follow(h, false) },
		forget: detach,
		leave:  detach,
	}
}

// isSettled reports whether nothing more comes of a task by itself. One that is
// forgotten was settled.
func isSettled(t *engine.Task) bool { return t.State == 0 || t.State.IsSettled() }

// settledFor returns the answer for a waiter for a task to be done: a refusal when the task is dead
// or cancelled instead.
func settledFor(eff engine.Effect) engine.Effect {
	if eff.Outcome != engine.Done {
		return eff
	}
	if t := &eff.Tasks[0]; isSettled(t) && t.State != interlock.TaskDone && t.State != 0 {
		eff.Outcome, eff.Code = engine.Refused, interlock.CodeTaskSettled
		eff.Message = message.New(message.TaskIs, message.Str(t.State.String()), message.Sub(t.Reason))
	}
	return eff
}

// taskID is that of the path.
func (c *call) taskID() (interlock.TaskID, bool) {
	id, err := interlock.ParseTaskID(c.variable)
	return id, c.idIsGood(err, "task", "q_")
}

// getTask is GET /v1/tasks/{id}. With wait_ms it waits for the end of the task, and
// then tells how it stands, whatever that is.
func (c *call) getTask() {
	id, ok := c.taskID()
	if !ok {
		return
	}
	wait, ok := c.intParam("wait_ms", 0, 0, 1<<40)
	if !ok {
		return
	}
	flow := c.query.Get("flow")
	cmd := &engine.FollowTask{Head: c.head(), Flow: flow, Task: id, Attach: true}
	if text := c.query.Get("session"); text != "" {
		session, err := interlock.ParseSessionID(text)
		if err != nil || session.IsZero() {
			c.fail(badID("session", "s_"))
			return
		}
		cmd.Session = session
	}
	if wait == 0 {
		c.lookAtTask(id)
		return
	}
	last, ok := c.listen(cmd, &cmd.Head, min(time.Duration(wait)*time.Millisecond, interlock.MaxLongPoll),
		func(first *engine.Effect) *longPoll { return untilSettled(first, flow) })
	switch eff := &last.eff; {
	case !ok:
	case eff.Outcome == engine.Refused && eff.Code != interlock.CodeTaskSettled:
		c.refused(eff, last.at)
	case len(eff.Tasks) == 0 || !isSettled(&eff.Tasks[0]):
		c.lookAtTask(id)
	default:
		eff.Outcome = engine.Done
		c.sendTask(http.StatusOK, "", eff, last.at)
	}
}

// lookAtTask answers how a task stands, with its place in line.
func (c *call) lookAtTask(id interlock.TaskID) {
	eff := engine.Effect{Outcome: engine.Done, Tasks: make([]engine.Task, 1)}
	var known bool
	at, ok := c.read(func(e *engine.Engine, _ engine.Time) { eff.Tasks[0], known = e.Task(c.namespace, id) })
	switch {
	case !ok:
	case !known:
		c.refuse(interlock.CodeUnknownTask, "no task has this id, or it was settled long ago and deleted")
	default:
		c.sendTask(http.StatusOK, "", &eff, at)
	}
}

// listTasks is GET /v1/tasks.
func (c *call) listTasks() {
	list := engine.TaskList{Namespace: c.namespace, Queue: c.query.Get("queue"), Group: c.query.Get("group")}
	if name := c.query.Get("state"); name != "" {
		var ok bool
		if list.State, ok = interlock.ParseTaskState(name); !ok {
			c.refuse(interlock.CodeInvalidRequest, fmt.Sprintf(
				"parameter state: want scheduled, waiting, running, asking, done, dead or cancelled, found %q", clipped(name),
			))
			return
		}
	}
	if text := c.query.Get("key"); text != "" {
		var ok bool
		if list.Key, ok = c.key(text); !ok {
			return
		}
	}
	if list.Queue != "" {
		if _, _, ok := c.queue(list.Queue); !ok {
			return
		}
	}
	listing := fmt.Sprintf("tasks %q %s %q %q", list.Queue, list.State, list.Group, list.Key)
	var ok bool
	if list.Limit, ok = c.pageSize(); !ok || !c.openPlace(listing, &list.After) {
		return
	}
	if at, ok := c.survey(&list); ok {
		cursor := ""
		if list.More {
			cursor = c.makePlace(listing, list.Next)
		}
		c.sendTasks(list.Rows, false, cursor, at)
	}
}

// pageSize reads how many rows of a listing are asked for. ok is false when the call was
// answered.
func (c *call) pageSize() (limit int, ok bool) {
	n, ok := c.intParam("limit", 100, 1, 1000)
	return int(n), ok
}

// sendTasks answers with a page of tasks, and a cursor if there are more.
func (c *call) sendTasks(rows []engine.Task, whole bool, cursor string, at interlock.At) {
	j := c.reply()
	j.openArray("tasks")
	for i := range rows {
		writeTask(j, "", prose.Task(&rows[i]), c, whole)
	}
	j.closeArray()
	j.said("cursor", cursor)
	c.send(http.StatusOK, j, at)
}

// changeTask carries out a change of a task that does not run.
func (c *call) changeTask(change engine.TaskChange, outcome string) {
	h, ok := c.mutating()
	if !ok {
		return
	}
	cmd := &engine.ChangeTask{Head: h, Change: change}
	if cmd.Task, ok = c.taskID(); !ok {
		return
	}
	if !c.body(func(d *jsonIn) { decodeChange(d, cmd) }) {
		return
	}
	eff, at, ok := c.do(cmd)
	switch {
	case !ok:
	case change == engine.DiscardTask:
		c.sendTaskAdvised(http.StatusOK, outcome, &eff, interlock.Advice{}, at) // it is forgotten
	default:
		c.sendTask(http.StatusOK, outcome, &eff, at)
	}
}

// cancelTask is POST /v1/tasks/{id}/cancel.
func (c *call) cancelTask() { c.changeTask(engine.CancelTask, "cancelled") }

// rescheduleTask is POST /v1/tasks/{id}/reschedule.
func (c *call) rescheduleTask() { c.changeTask(engine.RescheduleTask, "rescheduled") }

// replayTask is POST /v1/tasks/{id}/replay: a dead or cancelled one is taken up again.
func (c *call) replayTask() { c.changeTask(engine.ReplayTask, "replayed") }

// discardTask is POST /v1/tasks/{id}/discard: a settled one is forgotten.
func (c *call) discardTask() { c.changeTask(engine.DiscardTask, "discarded") }
