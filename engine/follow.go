package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/message"
)

// Waits for the end of a task, by its submitter or by others.
//
// With a session it is a wait of its flow, so it has edges in the wait-for graph: to the flow
// of the worker that has the task, or to the task's place in line; for a message that another
// one holds back, to the edges of that one. A task that is scheduled, asks a person, or only
// lacks a worker has no edges.
//
// Such a wait is a request without claims, as a declared one is. But it is volatile: it lasts
// as long as its caller listens, and listening again is a new wait. So it has no number of its
// own but shares the highest one assigned before, counts for nothing that is journaled, and
// does not keep its session alive. In a deadlock it is the victim before any other wait: its
// listener is notified, and the task continues.
//
// A flow that waits for a task lends its priority to the worker that has it, as to the holder
// of a lock. A task in line keeps its own: it holds nothing, so a caller that wants it to come
// sooner submits it with a higher one.

// follower is a caller that waits for the end of a task.
type follower struct {
	task   *task
	caller Caller
	wire   uint64   // Head.Link
	wait   *request // of its flow; nil for one without a session

	link   collection.Element[*follower] // in task.followers
	mine   collection.Element[*follower] // in session.follows
	inLane collection.Element[*follower] // in lane.waits
	seat   int32                         // in tasks.heard
}

func (f *follower) SetIndex() *int32 { return &f.seat }

func (c *FollowTask) decide(e *Engine) {
	if code, problem := checkTexts(text{"flow", c.Flow, interlock.MaxNameBytes}); code != "" {
		e.refuse(code, problem)
		return
	}
	t := e.findTask(c.Task)
	if t == nil {
		return
	}
	if c.Attach {
		sess, ok := e.caller()
		if !ok {
			return
		}
		if t.state == interlock.TaskRunning && t.request.isOf(sess, flowOr(c.Flow)) {
			e.refuse(interlock.CodeInvalidRequest, message.New(message.FollowOwnTask))
			return
		}
		if own := t.ownAttemptOf(sess, c.Flow); own != nil {
			e.refuseOwnAttempt(own)
			return
		}
	}
	e.replyTask(t, c.Attach, c.Flow)
}

// ownAttemptOf is session.ownAttempt for a wait for the end of the task.
func (t *task) ownAttemptOf(sess *session, flow string) *request {
	switch {
	case sess == nil || flow != "" || isSettled(t.state):
		return nil
	case t.state != interlock.TaskRunning:
		return sess.ownAttempt(flow, t.spec.Claims, false)
	case t.request.session() == sess && t.request.phase == held:
		return t.request
	}
	return nil
}

// replyTask answers a command about a task. With attach, its caller is notified when the task
// is settled, unless it is already, and the flow waits until then.
func (e *Engine) replyTask(t *task, attach bool, flow string) {
	if !attach || isSettled(t.state) {
		e.reply(Done).Tasks = []interlock.Task{e.showTask(t)}
		return
	}
	sess := e.listening()
	if no := cmp.Or(t.tooManyFollowers(), t.queue.ns.tooManyFollows(sess)); no != nil {
		e.refuseFor(no)
		return
	}
	e.reply(Done).Tasks = []interlock.Task{e.showTask(t)}
	f := &follower{task: t, caller: e.head.From, wire: e.head.Link}
	f.link.Value, f.mine.Value, f.inLane.Value = f, f, f
	t.own().followers.PushBack(&f.link)
	t.queue.ns.tasks.heard.Add(f)
	if sess == nil {
		t.queue.ns.tasks.loose++
		return
	}
	e.waitFor(f, sess.flow(flowOr(flow)))
}

// listening returns the session of the waiting caller, nil for none.
func (e *Engine) listening() *session {
	if sess := e.scope(); sess != nil && !sess.dead {
		return sess
	}
	return nil
}

// waitFor makes a flow wait for the task that f follows.
func (e *Engine) waitFor(f *follower, by *flowState) {
	s := f.task.queue.ns
	r := &request{requestExt: &requestExt{awaited: f}, num: e.num, phase: waiting, granted: e.now, priority: int8(f.task.spec.Priority), terms: s.agree(interlock.Terms{}), requestDetail: noDetails}
	r.wait = &wait{only: [1]queueEntry{{req: r}}}
	r.join(by)
	r.wait.rank = r.standing()
	r.setScore()
	f.wait = r
	f.task.awaited++
	if m := f.task.mail; m != nil {
		m.lane.waits.PushBack(&f.inLane)
	}
	by.sess.follows.PushBack(&f.mine)
	s.tasks.awaits.Add(r)
	by.waits = append(by.waits, r)
	by.joined(r, true)
	if r.priority != 0 {
		s.ranked++
	}
	s.disturb()
	e.suspect(r.party, nil)
}

// unfollow ends that f listens, and waits.
func (f *follower) unfollow() {
	t, r := f.task, f.wait
	s := t.queue.ns
	t.followers.Remove(&f.link)
	s.tasks.heard.Remove(f)
	if r == nil {
		s.tasks.loose--
		t.tidy()
		return
	}
	t.awaited--
	if t.mail != nil {
		t.mail.lane.waits.Remove(&f.inLane)
	}
	t.tidy()
	s.disturb()
	p := r.party
	p.sess.follows.Remove(&f.mine)
	s.tasks.awaits.Remove(r)
	i := len(p.waits) - 1
	for p.waits[i] != r {
		i--
	}
	p.waits = slices.Delete(p.waits, i, i+1)
	p.parted(r, true)
	if r.priority != 0 {
		s.ranked--
	}
	f.wait, r.phase = nil, over
}

// reportToFollowers notifies the followers of a task that it is settled.
func (e *Engine) reportToFollowers(t *task) {
	for t.followers.Len() > 0 {
		e.objects++
		f := t.followers.Front().Value
		f.unfollow()
		eff := e.effect(f.caller, Done)
		eff.Tasks = []interlock.Task{e.showTask(t)}
		if t.state != interlock.TaskDone {
			eff.Outcome, eff.Code, eff.Message = Refused, interlock.CodeTaskSettled, message.New(message.TaskIs, message.Str(t.state.String()), message.Str(t.reason))
		}
	}
}

// refuseFollower refuses a follower of a task as the victim of a deadlock.
func (e *Engine) refuseFollower(f *follower, cycle []interlock.CycleStep) {
	t := f.task
	f.unfollow()
	eff := e.effect(f.caller, Refused)
	eff.Code, eff.Tasks = interlock.CodeDeadlock, []interlock.Task{e.showTask(t)}
	eff.Message = message.New(message.FollowDeadlock)
	var key interlock.Key
	if t.request != nil {
		key = t.request.firstKey()
	}
	eff.Conflict = e.situation(t.queue.ns, key)
	eff.Conflict.Cycle = cycle
}

// endFollows ends those of a session that is over, the newest first: each is then the
// last of its flow's waits. It reports whether none is left.
func (e *Engine) endFollows(sess *session) (done bool) {
	for sess.follows.Len() > 0 {
		if e.full() {
			return false
		}
		e.objects++
		f := sess.follows.Back().Value
		f.unfollow()
		eff := e.effect(f.caller, Refused)
		eff.Tasks = []interlock.Task{e.showTask(f.task)}
		eff.Code, eff.Message = interlock.CodeSessionEnded, message.New(message.FollowerSessionOver)
	}
	return true
}

// detachTasks ends the waits of a caller that has left: workers' pulls, and waits for the ends
// of tasks. For one session these are up to interlock.MaxPulls and MaxFollows.
func (e *Engine) detachTasks(s *namespace, c *Detach) {
	leave := func(list *collection.List[*follower]) {
		e.objects += list.Len()
		for _, f := range slices.Collect(list.All) {
			if f.wire == c.Link {
				f.unfollow()
			}
		}
	}
	if !c.Ticket.IsZero() {
		if p := s.tasks.pulls[c.Ticket]; p != nil && p.wire == c.Link {
			p.dismiss()
		}
		if t := s.tasks.known[interlock.TaskID(c.Ticket)]; t != nil {
			leave(&t.followers)
		}
		return
	}
	sess := s.sessions[c.Session]
	if sess == nil {
		return
	}
	e.objects += sess.pulls.Len()
	for _, p := range slices.Collect(sess.pulls.All) {
		if p.wire == c.Link {
			p.dismiss()
		}
	}
	leave(&sess.follows)
}

// follows reports whether r is the wait for the end of a task.
func (r *request) follows() bool { return r.awaited != nil }

// isAwaited reports whether a flow waits for the end of the task, or of one that it
// holds back.
func (t *task) isAwaited() bool {
	return t != nil && (t.awaited > 0 || t.mail != nil && t.mail.lane.waits.Len() > 0 && t.ahead() == nil)
}

// isAwaited reports whether a flow waits for the end of the task that runs under lease r.
func (r *request) isAwaited() bool {
	return r.task != nil && r.task.request == r && r.task.isAwaited()
}

// stands returns that with which the task stands in line, or is in a worker's hands, or
// the one that holds it back; nil if there is none.
func (f *follower) stands() *request {
	if first := f.task.ahead(); first != nil {
		return first.request
	}
	return f.task.request
}

// eachBlocker calls visit for each flow and waiter that the follower of a task waits for, like
// Engine.eachBlocker for other waits.
func (f *follower) eachBlocker(visit func(need int, p *flowState, r *request) bool) bool {
	switch r := f.stands(); {
	case r == nil:
		return false
	case r.phase == waiting:
		return visit(noNeed, nil, r)
	default:
		return r.party != nil && len(r.party.waits) > 0 && visit(noNeed, r.party, nil)
	}
}

// lentByFollowers returns the highest rank of the flows that wait for the end of the task that
// runs under lease r, if it is above the given one.
func (r *request) lentByFollowers(rank int32) int32 {
	if !r.isAwaited() {
		return rank
	}
	waits := &r.task.followers
	if m := r.task.mail; m != nil {
		waits = &m.lane.waits
	}
	for f := range waits.All {
		if f.wait != nil && f.wait.party != r.party {
			rank = max(rank, f.wait.wait.rank)
		}
	}
	return rank
}

// holder returns the flow that is at work on the task which w follows, or on the one before it;
// nil for none.
func (w *wait) holder() *flowState {
	if w.req().awaited == nil {
		return nil
	}
	if r := w.req().awaited.stands(); r != nil && r.phase != waiting {
		return r.party
	}
	return nil
}

// appendAwaited adds the edge of a follower of a task and, once, those of the task if it stands
// in line.
func (e *Engine) appendAwaited(edges []WaitEdge, f *follower) []WaitEdge {
	edge := WaitEdge{Waiter: partyOf(f.wait), Task: f.task.id, Waited: e.now.Sub(f.wait.arrived())}
	r := f.stands()
	if r == nil {
		return append(edges, edge)
	}
	edge.Blocker = partyOf(r)
	edge.Blocker.Request = r.num
	edges = append(edges, edge)
	if r.phase == waiting && f.task.firstToWait() == f {
		edges = e.appendWaits(edges, r)
	}
	return edges
}

// firstToWait returns that of the flows which wait for the end of the task that came
// first, nil if there is none.
func (t *task) firstToWait() *follower {
	for f := range t.followers.All {
		if f.wait != nil {
			return f
		}
	}
	return nil
}
