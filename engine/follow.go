package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/store"
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

func (c *FollowTask) decide(e *Engine) {
	if code, problem := store.CheckTexts(store.Text{
		Name: "flow", Value: c.Flow, Limit: interlock.MaxNameBytes,
	}); code != "" {
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
		if t.State == interlock.TaskRunning && t.Request.IsOf(sess, flowOr(c.Flow)) {
			e.refuse(interlock.CodeInvalidRequest, message.New(message.FollowOwnTask))
			return
		}
		if own := t.OwnAttemptOf(sess, c.Flow); own != nil {
			e.refuseOwnAttempt(own)
			return
		}
	}
	e.replyTask(t, c.Attach, c.Flow)
}

// replyTask answers a command about a task. With attach, its caller is notified when the task
// is settled, unless it is already, and the flow waits until then.
func (e *Engine) replyTask(t *store.Task, attach bool, flow string) {
	if !attach || t.State.IsSettled() {
		e.reply(Done).Tasks = []Task{t.Show()}
		return
	}
	sess := e.listening()
	if no := cmp.Or(t.TooManyFollowers(), t.Queue.NS.TooManyFollows(sess)); no != nil {
		e.refuseFor(no)
		return
	}
	e.reply(Done).Tasks = []Task{t.Show()}
	f := &store.Follower{Task: t, Caller: e.head.From, Wire: e.head.Link}
	f.Link.Value, f.Mine.Value, f.InLane.Value = f, f, f
	t.Own().Followers.PushBack(&f.Link)
	t.Queue.NS.Tasks.Heard.Add(f)
	if sess == nil {
		t.Queue.NS.Tasks.Loose++
		return
	}
	e.waitFor(f, sess.Flow(flowOr(flow)))
}

// listening returns the session of the waiting caller, nil for none.
func (e *Engine) listening() *store.Session {
	if sess := e.scope(); sess != nil && !sess.Dead {
		return sess
	}
	return nil
}

// waitFor makes a flow wait for the task that f follows.
func (e *Engine) waitFor(f *store.Follower, by *store.FlowState) {
	s := f.Task.Queue.NS
	r := &store.Request{
		RequestExt: &store.RequestExt{Awaited: f}, Num: e.Num, Phase: store.Waiting, Granted: e.Clock,
		Priority: int8(f.Task.Spec.Priority), Conditions: s.Agree(interlock.Terms{}), RequestDetail: store.NoDetails,
	}
	r.Wait = &store.Wait{Only: [1]store.QueueEntry{{Req: r}}}
	r.Join(by)
	r.Wait.Rank = r.Standing()
	r.SetScore()
	f.Wait = r
	f.Task.Awaited++
	if m := f.Task.Mail; m != nil {
		m.Lane.Waits.PushBack(&f.InLane)
	}
	by.Sess.Follows.PushBack(&f.Mine)
	s.Tasks.Awaits.Add(r)
	by.Waits = append(by.Waits, r)
	by.Joined(r, true)
	if r.Priority != 0 {
		s.Ranked++
	}
	s.Disturb()
	e.Suspect(r.FlowState, nil)
}

// reportToFollowers notifies the followers of a task that it is settled.
func (e *Engine) reportToFollowers(t *store.Task) {
	for t.Followers.Len() > 0 {
		e.Visited++
		f := t.Followers.Front().Value
		f.Unfollow()
		eff := e.effect(f.Caller, Done)
		eff.Tasks = []Task{t.Show()}
		if t.State != interlock.TaskDone {
			eff.Outcome, eff.Code, eff.Message = Refused, interlock.CodeTaskSettled, message.New(
				message.TaskIs, message.Str(t.State.String()), message.Sub(t.Reason),
			)
		}
	}
}

// refuseFollower refuses a follower of a task as the victim of a deadlock.
func (e *Engine) refuseFollower(f *store.Follower, cycle []interlock.CycleStep) {
	t := f.Task
	f.Unfollow()
	eff := e.effect(f.Caller, Refused)
	eff.Code, eff.Tasks = interlock.CodeDeadlock, []Task{t.Show()}
	eff.Message = message.New(message.FollowDeadlock)
	var key interlock.Key
	if t.Request != nil {
		key = t.Request.FirstKey()
	}
	eff.Conflict = t.Queue.NS.Situation(key)
	eff.Conflict.Cycle = cycle
}

// endFollows ends those of a session that is over, the newest first: each is then the
// last of its flow's waits. It reports whether none is left.
func (e *Engine) endFollows(sess *store.Session) (done bool) {
	for sess.Follows.Len() > 0 {
		if e.full() {
			return false
		}
		e.Visited++
		f := sess.Follows.Back().Value
		f.Unfollow()
		eff := e.effect(f.Caller, Refused)
		eff.Tasks = []Task{f.Task.Show()}
		eff.Code, eff.Message = interlock.CodeSessionEnded, message.New(message.FollowerSessionOver)
	}
	return true
}

// detachTasks ends the waits of a caller that has left: workers' pulls, and waits for the ends
// of tasks. For one session these are up to interlock.MaxPulls and MaxFollows.
func (c *Detach) detachTasks(e *Engine, s *store.Namespace) {
	leave := func(list *collection.List[*store.Follower]) {
		e.Visited += list.Len()
		for _, f := range slices.Collect(list.All) {
			if f.Wire == c.Link {
				f.Unfollow()
			}
		}
	}
	if !c.Ticket.IsZero() {
		if p := s.Tasks.Pulls[c.Ticket]; p != nil && p.Wire == c.Link {
			p.Dismiss()
		}
		if t := s.Tasks.Known[interlock.TaskID(c.Ticket)]; t != nil {
			leave(&t.Followers)
		}
		return
	}
	sess := s.Sessions[c.Session]
	if sess == nil {
		return
	}
	e.Visited += sess.Pulls.Len()
	for _, p := range slices.Collect(sess.Pulls.All) {
		if p.Wire == c.Link {
			p.Dismiss()
		}
	}
	leave(&sess.Follows)
}
