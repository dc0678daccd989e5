package engine

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// How attempts at tasks come to their ends.

// attempt returns the task that runs under the given lease, if its worker holds the lease, or
// it is past its hard end. If the attempt is over, the answer reports the task's state.
func (e *Engine) attempt(id interlock.LeaseID) *task {
	r := e.find(id, interlock.CodeUnknownLease)
	if r == nil {
		return nil
	}
	of := r.attemptAt()
	switch {
	case of.IsZero() && r.isOver() && r.reason != record.ByConversion:
		e.replyGone(r)
	case of.IsZero():
		e.refuse(interlock.CodeInvalidRequest, message.New(message.NotATaskLease))
	case r.isOver() || r.task.request != r:
		e.refuseMoved(of)
	default:
		return r.task
	}
	return nil
}

// attemptAt returns the id of the task that r is or was an attempt at.
func (r *request) attemptAt() (id interlock.TaskID) {
	switch {
	case r.task != nil:
		return r.task.id
	case r.endCause != nil:
		return r.endCause.task
	}
	return id
}

// refuseMoved answers the worker of an ended attempt with the task's state.
func (e *Engine) refuseMoved(id interlock.TaskID) {
	t := e.pendingWork.ns.tasks.known[id]
	if t == nil {
		e.refuse(interlock.CodeTaskMoved, message.New(message.AttemptForgotten))
		return
	}
	if t.spec.Message && t.state == interlock.TaskDone {
		e.refuse(interlock.CodeAlreadyReplied, message.New(message.AttemptReplied)).Tasks = []interlock.Task{e.showTask(t)}
		return
	}
	where := message.New(message.TaskIsNow, message.Str(t.state.String()))
	if a := t.going; a != nil {
		where = message.New(message.TaskWith, message.Str(a.agent), message.Num(a.number), message.Num(a.fence))
	}
	eff := e.refuse(interlock.CodeTaskMoved, message.New(message.AttemptMoved, message.Sub(where)))
	eff.Tasks = []interlock.Task{e.showTask(t)}
	if t.going != nil {
		eff.Conflict = e.situation(t.queue.ns, t.request.firstKey())
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
	r := t.request
	if r.isPutAside() {
		e.refuseParked(r)
		return
	}
	commit := &Commit{Head: c.Head, Agent: r.agentName(), CommitRequest: c.CommitRequest, bodies: c.bodies}
	commit.Flow, commit.Leases = r.flowName(), nil
	if no := checkCommit(commit); no != nil {
		e.refuseFor(no)
		return
	}
	by := submitter{agent: r.agentName(), flow: r.flowName(), principal: c.Actor, sess: r.session()}
	if t.spec.Message {
		by.writer = t.spec.Mailbox()
	}
	specs, no := e.prepare(c.Tasks, by)
	if no != nil {
		e.refuseFor(no)
		return
	}
	leases := []*request{r}
	list, ok := e.decideCommit(commit, r.session(), leases, t)
	if !ok {
		return
	}
	version := e.versionOf(commit)
	e.emitWrites(commit, by.sess, leases, list, version, t)
	ev := e.standing(t, interlock.TaskDone)
	ev.Version, ev.Changed = version, by.writer != "" && commit.writes(by.writer)
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
	e.replyWritten(commit, version)
	e.out.Effects[e.replied].Tasks = []interlock.Task{e.showTask(t)}
	e.reportCommitted(commit, by.sess, leases)
	e.placed(t)
}

// decide takes in that an attempt has failed.
func (c *Nack) decide(e *Engine) {
	if code, problem := checkTexts(text{"reason", c.Reason, interlock.MaxReasonBytes}); code != "" {
		e.refuse(code, problem)
		return
	}
	if c.Delay < -1 || c.Delay > interlock.MaxDelay {
		e.refuse(interlock.CodeInvalidTTL, message.New(message.NotUpTo, message.Str("delay"), message.Dur(c.Delay), message.Dur(time.Duration(interlock.MaxDelay))))
		return
	}
	t := e.attempt(c.Lease)
	if t == nil {
		return
	}
	r := t.request
	if r.isPutAside() {
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
		ev.Op, ev.Outcome = uint8(interlock.TaskDead), cmp.Or(c.Reason, givenUp)
	case pause == 0:
		ev.Due = t.pause(c.Jitter)
	case pause == -1:
		ev.Op = uint8(interlock.TaskWaiting)
	default:
		ev.Due = pause
	}
	e.tag(ev, Done)
	e.emit(ev)
	e.emit(e.endCause(r, record.ByNack))
	e.placed(t)
	e.reply(Done).Tasks = []interlock.Task{e.showTask(t)}
}

// attemptLost continues a task after its attempt r has ended without an acknowledgement.
func (e *Engine) attemptLost(t *task, r *request) {
	ev := e.failure(t, r, r.reason, "")
	if ev.Op == uint8(interlock.TaskScheduled) {
		ev.Due = t.pause(t.dice())
	}
	e.emit(ev)
	e.placed(t)
}

// failure drafts the event for an attempt that has failed. The task is
// scheduled again, unless it was the last one.
func (e *Engine) failure(t *task, r *request, why record.Reason, words string) *record.Event {
	*e.draft() = record.Event{
		Kind: record.AttemptFailed, Namespace: t.queue.ns.name, ID: t.id, Num: t.num, Generation: uint64(t.attempt), Op: uint8(interlock.TaskScheduled),
		Agent: t.going.agent, SessionName: t.going.session, Fence: r.fence, Held: e.now.Sub(r.granted), Reason: why, Outcome: words,
	}
	switch {
	case int(t.attempt) >= t.maxAttempts():
		e.ev.Op = uint8(interlock.TaskDead)
		e.ev.Outcome = cmp.Or(words, lastAttempt(int(t.attempt), why))
	case t.spec.Deadline != 0 && t.spec.Deadline <= e.now:
		e.ev.Op = uint8(interlock.TaskDead)
		e.ev.Outcome = cmp.Or(words, pastDeadline)
	}
	return e.ev
}

func (t *task) maxAttempts() int {
	return cmp.Or(t.spec.Attempts, t.queue.MaxAttempts, interlock.DefaultAttempts)
}

// pause makes the time until the next attempt of random bits: it is uniform up to a
// bound that doubles with each attempt (full jitter).
func (t *task) pause(random uint64) time.Duration {
	bound := t.backoff()
	for range max(0, t.attempt-1) {
		if bound >= t.maxBackoff() {
			break
		}
		bound *= 2
	}
	return t.pauseUpTo(bound, random)
}

// pauseUpTo makes a pause of random bits, up to a bound and the longest one.
func (t *task) pauseUpTo(bound time.Duration, random uint64) time.Duration {
	high, _ := bits.Mul64(random, uint64(min(bound, t.maxBackoff())))
	return 1 + time.Duration(high)
}

func (t *task) backoff() time.Duration {
	return cmp.Or(t.spec.Backoff, t.queue.Backoff, interlock.DefaultBackoff)
}

func (t *task) maxBackoff() time.Duration {
	return cmp.Or(t.spec.MaxBackoff, t.queue.MaxBackoff, interlock.DefaultMaxBackoff)
}

// dice returns the bits for the pause after an attempt, when the command brought no random
// ones.
func (t *task) dice() uint64 { return uint64(collection.Mix(t.num<<16+uint64(t.attempt))) << 32 }

// standing drafts the event for a task that stands elsewhere.
func (e *Engine) standing(t *task, state interlock.TaskState) *record.Event {
	*e.draft() = record.Event{Kind: record.TaskMoved, Namespace: t.queue.ns.name, ID: t.id, Num: t.num, Op: uint8(state), Generation: uint64(t.attempt), Outcome: t.reason}
	if state == interlock.TaskDone {
		e.ev.Outcome = ""
	}
	if a := t.going; a != nil {
		e.ev.Agent, e.ev.SessionName, e.ev.Fence = a.agent, a.session, a.fence
	}
	return e.ev
}

// fallBack takes a task that must not wait any more out of the lines. A deadlock's victim comes
// back later; a task that can never have its permits is dead.
//
// The others of the cycle may wait for as long as they like, and the victim closes the
// cycle again whenever it comes back. Nothing counts that, so its pause grows with the
// time since it first stood in line.
func (e *Engine) fallBack(t *task, why record.Reason) {
	ev := e.standing(t, interlock.TaskScheduled)
	ev.Reason, ev.Due = why, t.pauseUpTo(max(t.backoff(), e.now.Sub(t.arrived)), t.dice())
	if why == record.ByPattern {
		ev.Op, ev.Due, ev.Outcome = uint8(interlock.TaskDead), 0, tooManyForPattern
	}
	e.emit(ev)
	e.placed(t)
}

// placed does what there is to do for a task that stands elsewhere.
func (e *Engine) placed(t *task) {
	if !isSettled(t.state) {
		e.newInLine(t)
		return
	}
	e.disarmTask(t)
	e.reportToFollowers(t)
	if next := t.successor(); next != nil {
		e.newInLine(next)
	}
}

// newInLine has a task looked at that may stand in line since a moment ago.
func (e *Engine) newInLine(t *task) {
	if r := t.request; t.state == interlock.TaskWaiting && r != nil && len(r.needs()) > 0 {
		e.suspect(nil, r)
	}
	e.attend(t)
}

// attend has a task that does not run looked at when it may go on.
func (e *Engine) attend(t *task) {
	switch r := t.request; {
	case t.state != interlock.TaskWaiting || r == nil:
	case len(r.needs()) == 0:
		e.couldRun(t)
	default:
		e.watchAnywhere(r)
	}
	e.armTask(t)
}

// armTask sets the timer of a task that does not run to its next deadline.
func (e *Engine) armTask(t *task) {
	at := record.Never
	if t.spec.Deadline != 0 {
		at = t.spec.Deadline
	}
	if t.state == interlock.TaskScheduled {
		at = min(at, t.spec.Due)
	}
	if t.state == interlock.TaskAsking {
		at = min(at, t.spec.Approval.Until())
	}
	if at == record.Never {
		e.disarmTask(t)
		return
	}
	if t.timer == nil {
		t.own().timer = &timer{pos: -1, ord: t.num << 1, task: t} // its request has none while it does not run
	}
	e.timers.set(t.timer, at)
}

// disarmTask drops that timer.
func (e *Engine) disarmTask(t *task) {
	if t.timer != nil {
		e.timers.clear(t.timer)
		t.own().timer = nil
		t.tidy()
	}
}

// fireTask carries out a task's due timer.
func (e *Engine) fireTask(t *task) {
	switch {
	case t.state == interlock.TaskRunning || isSettled(t.state):
		return
	case t.spec.Deadline != 0 && t.spec.Deadline <= e.now:
		ev := e.standing(t, interlock.TaskDead)
		ev.Outcome = pastDeadline
		e.emit(ev)
	case t.state == interlock.TaskScheduled && t.spec.Due <= e.now:
		e.emit(e.standing(t, interlock.TaskWaiting))
	case t.state == interlock.TaskAsking && t.spec.Approval.Until() <= e.now:
		e.answerItself(t)
	}
	e.placed(t)
}

// recoverTasks rebuilds the volatile state of the tasks of a namespace: all that wait are in
// line again.
func (e *Engine) recoverTasks(s *namespace) {
	s.tasks.pulls, s.tasks.idle, s.tasks.heard, s.tasks.loose = nil, nil, nil, 0
	for _, q := range s.sortedQueues() {
		q.crews, q.lots, q.current, q.pass, q.hungry, q.parted, q.fresh = nil, nil, nil, 0, false, false, nil
		for _, g := range q.sortedGroups() {
			g.shelves, g.turning, g.capped, g.pass = nil, 0, !g.mayRun(), 0
		}
	}
	for _, t := range s.sortedTasks() {
		t.slot, t.shelf = 0, nil
		if t.taskHistory != noTrail {
			t.timer, t.followers, t.awaited = nil, collection.List[*follower]{}, 0
			if t.mail != nil {
				t.mail.lane.waits = collection.List[*follower]{}
			}
			t.tidy()
		}
		if t.state == interlock.TaskWaiting && t.request != nil {
			e.setEligibility(t, queuedBehindSibling)
		}
		if t.state != interlock.TaskRunning && !isSettled(t.state) {
			e.attend(t)
		}
	}
}

func (s *namespace) sortedTasks() []*task {
	return slices.SortedFunc(slices.Values(s.tasks.all), func(a, b *task) int { return cmp.Compare(a.num, b.num) })
}

func (c *Nack) again(e *Engine, a *storedAnswer) { e.replyTaskAgain(a) }

// replyTaskAgain answers with the task that a command was about.
func (e *Engine) replyTaskAgain(a *storedAnswer) {
	e.reply(Done).Tasks = []interlock.Task{e.taskAgain(a)}
}
