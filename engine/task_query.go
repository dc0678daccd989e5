package engine

import (
	"cmp"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// showTask describes a task.
func (e *Engine) showTask(t *store.Task) interlock.Task {
	s := t.Spec
	v := interlock.Task{
		ID: t.ID, Queue: t.Queue.Name, Kind: s.Kind, Claims: s.Claims, Payload: s.Payload, Purpose: s.Purpose, Group: s.Group,
		Priority: int(s.Priority), State: t.State, Agent: s.Agent, Session: s.Session, Flow: s.Flow, Principal: s.Principal,
		Sender: s.Sender,
		Age:    e.Clock.Sub(s.Submitted), Attempt: int(t.Attempt), MaxAttempts: t.MaxAttempts(), Result: s.Result,
		Reason:   t.Reason,
		Approval: e.showApproval(t),
	}
	if t.State == interlock.TaskScheduled {
		v.Due = max(0, s.Due.Sub(e.Clock))
	}
	if s.Deadline != 0 && !store.IsSettled(t.State) {
		v.Deadline = max(1, s.Deadline.Sub(e.Clock))
	}
	if store.IsSettled(t.State) {
		v.Settled = max(1, e.Clock.Sub(t.Since))
	}
	for i := range t.Past {
		a := &t.Past[i]
		v.Attempts = append(v.Attempts, interlock.Attempt{
			Number: a.Number, Agent: a.Agent, Session: a.Session, Fence: a.Fence, EndedBy: a.Why.String(), Reason: a.Words,
			Held: a.Held, Age: e.Clock.Sub(a.Ended),
		})
	}
	return v
}

// lookUp is showTask with where a task that waits stands, and with what has changed
// since a person was asked about it.
func (e *Engine) lookUp(t *store.Task) interlock.Task {
	v := e.showTask(t)
	e.revalidate(t, &v)
	if t.State != interlock.TaskWaiting {
		return v
	}
	if first := t.Ahead(); first != nil {
		v.Blocker = t.Spec.Mailbox()
		return v
	}
	r := t.Request
	if i := r.Blocker(); i >= 0 {
		n := r.Needs()[i].Node
		v.Blocker, v.Position, v.ETA = interlock.Key(n.Key), 1, e.ticket(r).ETA
		for c := n.Line.First; c != nil; c = c.Next {
			if c.Queue == t.Queue {
				v.Position += c.CountBefore(r)
			}
		}
	}
	v.Barred = t.IsBarred()
	return v
}

// Task describes a task, and reports whether it is known.
func (e *Engine) Task(ns interlock.Namespace, id interlock.TaskID) (interlock.Task, bool) {
	s := e.turnTo(ns)
	if s == nil || s.Tasks.Known[id] == nil {
		return interlock.Task{}, false
	}
	return e.lookUp(s.Tasks.Known[id]), true
}

// TaskList lists tasks in the order in which they were submitted, with no more text
// than an answer can take.
type TaskList struct {
	Namespace interlock.Namespace
	Queue     string              // "": of all
	State     interlock.TaskState // 0: in all
	Group     string              // "": of all
	Key       interlock.Key       // claimed, or the message's; "": any
	After     uint64              // Next of the page before; 0: from the beginning
	Limit     int                 // 0: 100

	Rows []interlock.Task
	More bool   // there are more than Limit
	Next uint64 // the listing continues after it, whatever becomes of these tasks

	found first[*store.Task]
	next  int
	bytes int
}

func (l *TaskList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	limit := rowsOf(l.Limit)
	l.found.limit = limit + 1
	wanted := func(t *store.Task) bool {
		return t.Num > l.After && (l.Queue == "" || t.Queue.Name == l.Queue) && (l.State == 0 || t.State == l.State) &&
			(l.Group == "" || t.Spec.Group == l.Group) && (l.Key == "" || t.Spec.ClaimsKey(l.Key))
	}
	if !sift(&l.found, s.Tasks.All.Part, &l.next, wanted, bySubmission) {
		return false
	}
	for _, t := range l.found.list {
		if l.bytes += t.Cost(); len(l.Rows) == limit || len(l.Rows) > 0 && l.bytes > interlock.MaxReadBytes {
			l.More = true
			break
		}
		l.Rows = append(l.Rows, e.showTask(t))
		l.Next = t.Num
	}
	return true
}

func bySubmission(a, b *store.Task) int { return cmp.Compare(a.Num, b.Num) }

// QueueStatus returns how a queue stands, and whether it is registered.
func (e *Engine) QueueStatus(ns interlock.Namespace, name string) (interlock.QueueStatus, bool) {
	q := e.turnTo(ns).Registered(name)
	if q == nil {
		return interlock.QueueStatus{}, false
	}
	return e.showQueue(q), true
}

// QueueList lists the registered queues in the order of their names.
type QueueList struct {
	Namespace interlock.Namespace

	Rows []interlock.QueueStatus

	found []*store.Queue
	next  int
}

func (l *QueueList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	if l.found == nil {
		l.found = s.SortedQueues()
	}
	for looked := 0; looked < glances && l.next < len(l.found); l.next++ {
		q := l.found[l.next]
		if looked++; q.Registered {
			l.Rows = append(l.Rows, e.showQueue(q))
		}
	}
	return l.next == len(l.found)
}

// showQueue shares the definition's groups and approvers with the engine: a changed queue has
// new ones, and these do not change.
func (e *Engine) showQueue(q *store.Queue) interlock.QueueStatus {
	v := interlock.QueueStatus{
		TaskQueue: q.TaskQueue, Scheduled: q.Counts[interlock.TaskScheduled], Waiting: q.Counts[interlock.TaskWaiting],
		Running: q.Counts[interlock.TaskRunning], Asking: q.Counts[interlock.TaskAsking], Dead: q.Counts[interlock.TaskDead],
		Idle: q.Idle(),
	}
	if q.Lined.Len() > 0 {
		v.Oldest = e.Clock.Sub(q.Lined.Front().Value.Since)
	}
	return v
}

// findTask returns a task. If there is none, the command is refused.
func (e *Engine) findTask(id interlock.TaskID) *store.Task {
	if s := e.PendingWork.NS; s != nil {
		if t := s.Tasks.Known[id]; t != nil {
			return t
		}
	}
	e.refuse(interlock.CodeUnknownTask, message.New(message.UnknownTask))
	return nil
}

// taskAgain describes the task of an earlier answer, as far as it is still known.
func (e *Engine) taskAgain(a *store.StoredAnswer) interlock.Task {
	if t := e.PendingWork.NS.Tasks.Known[a.ID]; t != nil {
		return e.showTask(t)
	}
	return interlock.Task{ID: a.ID}
}
