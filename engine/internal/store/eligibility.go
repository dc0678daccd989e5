package store

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
)

// How a task that waits stands in line.
//
// Tasks of one queue are served in the order of the lines, and by workers that may never come.
// So of the tasks of a queue at a key only the first counts for others, and only as long as
// others are what it waits for. All the rest stand aside: they keep their places, in the order
// among those of their queue, and block no other request. A task that stands aside is checked
// again when what it waits for has changed, and blocks others from then on, if it is the first
// of its queue at all its keys and others block it. So no agent waits for a worker, neither
// directly nor behind another task, and the first task is overtaken only by requests that came
// while it had no worker.
//
// At each key the tasks that stand aside have buckets of their own (kind.aside), so requests
// that they do not block pass them without looking.

// Eligibility is how a task that waits stands in line. It is volatile.
type Eligibility uint8

const (
	QueuedBehindSibling Eligibility = iota // a task of its own queue blocks it, or it was not checked yet
	BlockedByOthers                        // others do, or it is about to be looked at
	Runnable                               // nothing does, and it has not found a worker yet
	Idle                                   // nothing did, and it had no worker
)

// IsYielding reports whether a task blocks only those of its own queue.
func (s Eligibility) IsYielding() bool { return s == QueuedBehindSibling || s == Idle }

// attend has a task that does not run looked at when it may go on.
func (st *State) attend(t *Task) {
	switch r := t.Request; {
	case t.State != interlock.TaskWaiting || r == nil:
	case len(r.Needs()) == 0:
		st.CouldRun(t)
	default:
		st.WatchAnywhere(r)
	}
	st.ArmTask(t)
}

// NewInLine has a task looked at that may stand in line since a moment ago.
func (st *State) NewInLine(t *Task) {
	if r := t.Request; t.State == interlock.TaskWaiting && r != nil && len(r.Needs()) > 0 {
		st.Suspect(nil, r)
	}
	st.attend(t)
}

// RecoverTasks rebuilds the volatile state of the tasks of a namespace: all that wait are in
// line again.
func (st *State) RecoverTasks(s *Namespace) {
	s.Tasks.Pulls, s.Tasks.Idle, s.Tasks.Heard, s.Tasks.Loose = nil, nil, nil, 0
	for _, q := range s.SortedQueues() {
		q.WorkerGroups, q.Lots, q.Current, q.Pass, q.NeedsDispatch, q.Parted, q.Fresh = nil, nil, nil, 0, false, false, nil
		for _, g := range q.SortedGroups() {
			g.Shelves, g.Turning, g.Capped, g.Pass = nil, 0, !g.MayRun(), 0
		}
	}
	for _, t := range s.SortedTasks() {
		t.Slot, t.Shelf = 0, nil
		if t.TaskHistory != NoTrail {
			t.Timer, t.Followers, t.Awaited = nil, collection.List[*Follower]{}, 0
			if t.Mail != nil {
				t.Mail.Lane.Waits = collection.List[*Follower]{}
			}
			t.Tidy()
		}
		if t.State == interlock.TaskWaiting && t.Request != nil {
			st.SetEligibility(t, QueuedBehindSibling)
		}
		if t.State != interlock.TaskRunning && !t.State.IsSettled() {
			st.attend(t)
		}
	}
}

// SetEligibility has a task that waits stand otherwise. When it steps aside, that is as if it
// left for all but those of its queue.
func (st *State) SetEligibility(t *Task, s Eligibility) {
	was := t.Eligibility.IsYielding()
	t.Eligibility = s
	if s.IsYielding() == was {
		return
	}
	r := t.Request
	for i := range r.Wait.Entries() {
		r.Wait.Entries()[i].SetAside(s.IsYielding())
	}
	if !s.IsYielding() {
		return
	}
	r.NS.Agenda.Relieved(r.FlowState, r)
	for i := range r.Needs() {
		for c := range r.Needs()[i].Facing {
			if c.Queue != t.Queue {
				st.ReadyClass(c)
			}
		}
	}
}

// Look computes the eligibility of a task that may be blocked, watches it at its blocker, and
// returns the index of that need, or -1 if nothing blocks it. A task that is still blocked
// where it is watched stays there.
func (st *State) Look(t *Task, watched int) int {
	r, s := t.Request, QueuedBehindSibling
	i := r.FirstNeed(watched, (*Request).BehindAt)
	if i < 0 {
		i, s = r.FirstNeed(watched, (*Request).BlockedAt), BlockedByOthers
	}
	if i < 0 {
		return i
	}
	st.SetEligibility(t, s)
	if i == watched {
		st.ArmPool(r.Needs()[i].Node.Pool())
	} else {
		st.Watch(r, i)
	}
	return i
}

// yieldToTask makes the tasks of its queue that t now stands before step aside.
func (st *State) yieldToTask(t *Task) {
	r := t.Request
	for i := range r.Needs() {
		m := &r.Needs()[i]
		for w := m.Overtaken(); w != nil; w = m.Overtaken() {
			w.Task.Unready()
			st.Look(w.Task, -1)
		}
	}
}

// CouldRun notes that nothing blocks a task any more.
func (st *State) CouldRun(t *Task) {
	if t.Eligibility == Runnable || t.Eligibility == Idle {
		return
	}
	q := t.Queue
	q.Shelve(t)
	if st.NeedsDispatch(q); q.NeedsDispatch && t.Group.MayRun() && q.HasWorker(t) {
		st.SetEligibility(t, Runnable)
		q.Fresh = append(q.Fresh, t)
	} else {
		st.SetEligibility(t, Idle)
	}
}
