package store

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
)

// Follower is a caller that waits for the end of a task.
type Follower struct {
	Task   *Task
	Caller Caller
	Wire   uint64   // Head.Link
	Wait   *Request // of its flow; nil for one without a session

	Link   collection.Element[*Follower] // in task.followers
	Mine   collection.Element[*Follower] // in session.follows
	InLane collection.Element[*Follower] // in lane.waits
	seat   int32                         // in tasks.heard
}

func (f *Follower) SetIndex() *int32 { return &f.seat }

// OwnAttemptOf is session.OwnAttempt for a wait for the end of the task.
func (t *Task) OwnAttemptOf(sess *Session, flow string) *Request {
	switch {
	case sess == nil || flow != "" || t.State.IsSettled():
		return nil
	case t.State != interlock.TaskRunning:
		return sess.OwnAttempt(flow, t.Spec.Claims, false)
	case t.Request.Session() == sess && t.Request.Phase == Held:
		return t.Request
	}
	return nil
}

// Unfollow ends that f listens, and waits.
func (f *Follower) Unfollow() {
	t, r := f.Task, f.Wait
	s := t.Queue.NS
	t.Followers.Remove(&f.Link)
	s.Tasks.Heard.Remove(f)
	if r == nil {
		s.Tasks.Loose--
		t.Tidy()
		return
	}
	t.Awaited--
	if t.Mail != nil {
		t.Mail.Lane.Waits.Remove(&f.InLane)
	}
	t.Tidy()
	s.Disturb()
	p := r.FlowState
	p.Sess.Follows.Remove(&f.Mine)
	s.Tasks.Awaits.Remove(r)
	i := len(p.Waits) - 1
	for p.Waits[i] != r {
		i--
	}
	p.Waits = slices.Delete(p.Waits, i, i+1)
	p.parted(r, true)
	if r.Priority != 0 {
		s.Ranked--
	}
	f.Wait, r.Phase = nil, Over
}

// Follows reports whether r is the wait for the end of a task.
func (r *Request) Follows() bool { return r.Awaited != nil }

// isAwaited reports whether a flow waits for the end of the task, or of one that it
// holds back.
func (t *Task) isAwaited() bool {
	return t != nil && (t.Awaited > 0 || t.Mail != nil && t.Mail.Lane.Waits.Len() > 0 && t.Ahead() == nil)
}

// isAwaited reports whether a flow waits for the end of the task that runs under lease r.
func (r *Request) isAwaited() bool {
	return r.Task != nil && r.Task.Request == r && r.Task.isAwaited()
}

// Stands returns that with which the task stands in line, or is in a worker's hands, or
// the one that holds it back; nil if there is none.
func (f *Follower) Stands() *Request {
	if first := f.Task.Ahead(); first != nil {
		return first.Request
	}
	return f.Task.Request
}

// EachBlocker calls visit for each flow and waiter that the follower of a task waits for, like
// Engine.EachBlocker for other waits.
func (f *Follower) EachBlocker(visit func(need int, p *FlowState, r *Request) bool) bool {
	switch r := f.Stands(); {
	case r == nil:
		return false
	case r.Phase == Waiting:
		return visit(NoNeed, nil, r)
	default:
		return r.FlowState != nil && len(r.FlowState.Waits) > 0 && visit(NoNeed, r.FlowState, nil)
	}
}

// lentByFollowers returns the highest rank of the flows that wait for the end of the task that
// runs under lease r, if it is above the given one.
func (r *Request) lentByFollowers(rank int32) int32 {
	if !r.isAwaited() {
		return rank
	}
	waits := &r.Task.Followers
	if m := r.Task.Mail; m != nil {
		waits = &m.Lane.Waits
	}
	for f := range waits.All {
		if f.Wait != nil && f.Wait.FlowState != r.FlowState {
			rank = max(rank, f.Wait.Wait.Rank)
		}
	}
	return rank
}

// Holder returns the flow that is at work on the task which w follows, or on the one before it;
// nil for none.
func (w *Wait) Holder() *FlowState {
	if w.Req().Awaited == nil {
		return nil
	}
	if r := w.Req().Awaited.Stands(); r != nil && r.Phase != Waiting {
		return r.FlowState
	}
	return nil
}

// FirstToWait returns that of the flows which wait for the end of the task that came
// first, nil if there is none.
func (t *Task) FirstToWait() *Follower {
	for f := range t.Followers.All {
		if f.Wait != nil {
			return f
		}
	}
	return nil
}
