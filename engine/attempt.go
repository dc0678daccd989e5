package engine

import (
	"cmp"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// How attempts at tasks come to their ends.

// attempt returns the task that runs under the given lease, if its worker holds the lease, or
// it is past its hard end. If the attempt is over, the answer reports the task's state.
func (e *Engine) attempt(id interlock.LeaseID) *store.Task {
	r := e.find(id, interlock.CodeUnknownLease)
	if r == nil {
		return nil
	}
	of := r.AttemptAt()
	switch {
	case of.IsZero() && r.IsOver() && r.Reason != record.ByConversion:
		e.replyGone(r)
	case of.IsZero():
		e.refuse(interlock.CodeInvalidRequest, message.New(message.NotATaskLease))
	case r.IsOver() || r.Task.Request != r:
		e.refuseMoved(of)
	default:
		if no := r.Task.Queue.NotSettler(e.head.Principal); no != nil {
			e.refuseFor(no)
			return nil
		}
		return r.Task
	}
	return nil
}

// refuseMoved answers the worker of an ended attempt with the task's state.
func (e *Engine) refuseMoved(id interlock.TaskID) {
	t := e.PendingWork.NS.Tasks.Known[id]
	if t == nil {
		e.refuse(interlock.CodeTaskMoved, message.New(message.AttemptForgotten))
		return
	}
	if t.Spec.Message && t.State == interlock.TaskDone {
		e.refuse(interlock.CodeAlreadyReplied, message.New(message.AttemptReplied)).Tasks = []Task{t.Show()}
		return
	}
	where := message.New(message.TaskIsNow, message.Str(t.State.String()))
	if a := t.Going; a != nil {
		where = message.New(message.TaskWith, message.Str(a.Agent), message.Num(a.Number), message.Num(a.Fence))
	}
	eff := e.refuse(interlock.CodeTaskMoved, message.New(message.AttemptMoved, message.Sub(where)))
	eff.Tasks = []Task{t.Show()}
	if t.Going != nil {
		eff.Conflict = t.Queue.NS.Situation(t.Request.FirstKey())
	}
}

// decide takes in that a task is done: all that comes of it, or nothing.
func (c *Ack) decide(e *Engine) {
	if e.draining {
		e.refuse(e.closedFor())
		return
	}
	if no := checkAck(c); no != nil {
		e.refuseFor(no)
		return
	}
	t := e.attempt(c.Lease)
	if t == nil {
		return
	}
	r := t.Request
	if r.IsPutAside() {
		e.refuseParked(r)
		return
	}
	commit := &Commit{Head: c.Head, Agent: r.AgentName(), CommitRequest: c.CommitRequest, bodies: c.bodies}
	commit.Flow, commit.Leases = r.FlowName(), nil
	if no := checkCommit(commit); no != nil {
		e.refuseFor(no)
		return
	}
	by := submitter{agent: r.AgentName(), flow: r.FlowName(), principal: c.Actor, sess: r.Session()}
	if t.Spec.Message {
		by.writer = t.Spec.Mailbox()
	}
	specs, no := e.prepare(c.Tasks, by)
	if no != nil {
		e.refuseFor(no)
		return
	}
	leases := []*store.Request{r}
	list, ok := commit.evaluate(e, r.Session(), leases, t)
	if !ok {
		return
	}
	version := commit.version(e)
	commit.emitWrites(e, by.sess, leases, list, version, t)
	ev := e.standing(t, interlock.TaskDone)
	ev.Actor, ev.Version, ev.Changed = c.Actor, version, by.writer != "" && commit.writes(by.writer)
	if len(c.Result) > 0 {
		ev.Blob = c.Result
	}
	e.tag(ev, Done)
	e.emit(ev)
	end := e.endCause(r, record.ByRelease)
	end.Note, end.Actor = c.Note, c.Actor
	e.emit(end)
	for i, spec := range specs {
		e.place(c.Tasks[i].ID, spec, by.sess)
	}
	commit.reply(e, version)
	e.out.Effects[e.replied].Tasks = []Task{t.Show()}
	commit.reportCommitted(e, by.sess, leases)
	e.placed(t)
}

// decide takes in that an attempt has failed.
func (c *Nack) decide(e *Engine) {
	if !e.acceptsReason(c.Reason) {
		return
	}
	if c.Delay < -1 || c.Delay > interlock.MaxDelay {
		e.refuse(
			interlock.CodeInvalidTTL,
			message.New(
				message.NotUpTo, message.Str("delay"), message.Dur(c.Delay), message.Dur(time.Duration(interlock.MaxDelay)),
			),
		)
		return
	}
	t := e.attempt(c.Lease)
	if t == nil {
		return
	}
	r := t.Request
	if r.IsPutAside() {
		e.refuseParked(r)
		return
	}
	var ev *record.Event
	if c.Unseen {
		ev = e.standing(t, interlock.TaskWaiting)
		ev.Generation--
	} else {
		ev = e.failure(t, r, record.ByNack, c.Reason)
	}
	switch pause := c.Delay; {
	case c.Unseen:
	case ev.Op == uint8(interlock.TaskDead):
	case c.Dead:
		ev.Op = uint8(interlock.TaskDead)
		ev.SetWhy(cmp.Or(message.Plain(c.Reason), message.New(message.TaskGivenUp)))
	case pause == 0:
		ev.Due = t.Pause(c.Jitter)
	case pause == -1:
		ev.Op = uint8(interlock.TaskWaiting)
	default:
		ev.Due = pause
	}
	e.tag(ev, Done)
	e.emit(ev)
	e.emit(e.endCause(r, record.ByNack))
	e.placed(t)
	e.reply(Done).Tasks = []Task{t.Show()}
}

// attemptLost continues a task after its attempt r has ended without an acknowledgement.
func (e *Engine) attemptLost(t *store.Task, r *store.Request) {
	ev := e.failure(t, r, r.Reason, "")
	if ev.Op == uint8(interlock.TaskScheduled) {
		ev.Due = t.Pause(t.Dice())
	}
	e.emit(ev)
	e.placed(t)
}

// failure drafts the event for an attempt that has failed. The task is
// scheduled again, unless it was the last one.
func (e *Engine) failure(t *store.Task, r *store.Request, why record.Reason, words string) *record.Event {
	*e.draft() = record.Event{
		Kind: record.AttemptFailed, Namespace: t.Queue.NS.Name, ID: t.ID, Num: t.Num, Generation: uint64(t.Attempt),
		Op:    uint8(interlock.TaskScheduled),
		Agent: t.Going.Agent, SessionName: t.Going.Session, Fence: r.Fence, Held: e.Clock.Sub(r.Granted), Reason: why,
		Outcome: words,
	}
	switch {
	case int(t.Attempt) >= t.MaxAttempts():
		e.ev.Op = uint8(interlock.TaskDead)
		e.ev.SetWhy(cmp.Or(message.Plain(words), message.New(
			message.TaskLastAttempt, message.Num(t.Attempt), message.Str(why.String()),
		)))
	case t.Spec.Deadline != 0 && t.Spec.Deadline <= e.Clock:
		e.ev.Op = uint8(interlock.TaskDead)
		e.ev.SetWhy(cmp.Or(message.Plain(words), message.New(message.TaskPastDeadline)))
	}
	return e.ev
}

// standing drafts the event for a task that stands elsewhere.
func (e *Engine) standing(t *store.Task, state interlock.TaskState) *record.Event {
	*e.draft() = record.Event{
		Kind: record.TaskMoved, Namespace: t.Queue.NS.Name, ID: t.ID, Num: t.Num, Op: uint8(state),
		Generation: uint64(t.Attempt),
	}
	if state != interlock.TaskDone {
		e.ev.SetWhy(t.Reason)
	}
	if a := t.Going; a != nil {
		e.ev.Agent, e.ev.SessionName, e.ev.Fence = a.Agent, a.Session, a.Fence
	}
	return e.ev
}

// fallBack takes a task that must not wait any more out of the lines. A deadlock's victim comes
// back later; a task that can never have its permits is dead.
//
// The others of the cycle may wait for as long as they like, and the victim closes the
// cycle again whenever it comes back. Nothing counts that, so its pause grows with the
// time since it first stood in line.
func (e *Engine) fallBack(t *store.Task, why record.Reason) {
	ev := e.standing(t, interlock.TaskScheduled)
	ev.Reason, ev.Due = why, t.PauseUpTo(max(t.Backoff(), e.Clock.Sub(t.Arrived)), t.Dice())
	if why == record.ByPattern {
		ev.Op, ev.Due = uint8(interlock.TaskDead), 0
		ev.SetWhy(message.New(message.TaskNeverPermitted))
	}
	e.emit(ev)
	e.placed(t)
}

// placed does what there is to do for a task that stands elsewhere.
func (e *Engine) placed(t *store.Task) {
	if !t.State.IsSettled() {
		e.NewInLine(t)
		return
	}
	e.DisarmTask(t)
	e.reportToFollowers(t)
	if next := t.Successor(); next != nil {
		e.NewInLine(next)
	}
}

// fireTask carries out a task's due timer.
func (e *Engine) fireTask(t *store.Task) {
	switch {
	case t.State == interlock.TaskRunning || t.State.IsSettled():
		return
	case t.Spec.Deadline != 0 && t.Spec.Deadline <= e.Clock:
		ev := e.standing(t, interlock.TaskDead)
		ev.SetWhy(message.New(message.TaskPastDeadline))
		e.emit(ev)
	case t.State == interlock.TaskScheduled && t.Spec.Due <= e.Clock:
		e.emit(e.standing(t, interlock.TaskWaiting))
	case t.State == interlock.TaskAsking && t.Spec.Approval.Until() <= e.Clock:
		e.answerItself(t)
	}
	e.placed(t)
}

func (c *Nack) again(e *Engine, a *store.StoredAnswer) { e.replyTaskAgain(a) }

// replyTaskAgain answers with the task that a command was about.
func (e *Engine) replyTaskAgain(a *store.StoredAnswer) {
	e.reply(Done).Tasks = []Task{e.taskAgain(a)}
}
