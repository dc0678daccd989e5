package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
)

// showTask describes a task.
func (e *Engine) showTask(t *task) interlock.Task {
	s := t.spec
	v := interlock.Task{
		ID: t.id, Queue: t.queue.Name, Kind: s.Kind, Claims: s.Claims, Payload: s.Payload, Purpose: s.Purpose, Group: s.Group,
		Priority: int(s.Priority), State: t.state, Agent: s.Agent, Session: s.Session, Flow: s.Flow, Principal: s.Principal, Sender: s.Sender,
		Age: e.now.Sub(s.Submitted), Attempt: int(t.attempt), MaxAttempts: t.maxAttempts(), Result: s.Result, Reason: t.reason,
		Approval: e.showApproval(t),
	}
	if t.state == interlock.TaskScheduled {
		v.Due = max(0, s.Due.Sub(e.now))
	}
	if s.Deadline != 0 && !isSettled(t.state) {
		v.Deadline = max(1, s.Deadline.Sub(e.now))
	}
	if isSettled(t.state) {
		v.Settled = max(1, e.now.Sub(t.since))
	}
	for i := range t.past {
		a := &t.past[i]
		v.Attempts = append(v.Attempts, interlock.Attempt{
			Number: a.number, Agent: a.agent, Session: a.session, Fence: a.fence, EndedBy: a.why.String(), Reason: a.words,
			Held: a.held, Age: e.now.Sub(a.ended),
		})
	}
	return v
}

// lookUp is showTask with where a task that waits stands, and with what has changed
// since a person was asked about it.
func (e *Engine) lookUp(t *task) interlock.Task {
	v := e.showTask(t)
	e.revalidate(t, &v)
	if t.state != interlock.TaskWaiting {
		return v
	}
	if first := t.ahead(); first != nil {
		v.Blocker = t.spec.Mailbox()
		return v
	}
	r := t.request
	if i := r.blocker(); i >= 0 {
		n := r.needs()[i].node
		v.Blocker, v.Position, v.ETA = interlock.Key(n.key), 1, e.ticket(r).ETA
		for c := n.line.first; c != nil; c = c.next {
			if c.queue == t.queue {
				v.Position += c.countBefore(r)
			}
		}
	}
	v.Barred = t.isBarred()
	return v
}

// Task describes a task, and reports whether it is known.
func (e *Engine) Task(ns interlock.Namespace, id interlock.TaskID) (interlock.Task, bool) {
	s := e.turnTo(ns)
	if s == nil || s.tasks.known[id] == nil {
		return interlock.Task{}, false
	}
	return e.lookUp(s.tasks.known[id]), true
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

	found first[*task]
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
	wanted := func(t *task) bool {
		return t.num > l.After && (l.Queue == "" || t.queue.Name == l.Queue) && (l.State == 0 || t.state == l.State) &&
			(l.Group == "" || t.spec.Group == l.Group) && (l.Key == "" || t.spec.ClaimsKey(l.Key))
	}
	if !sift(&l.found, s.tasks.all.Part, &l.next, wanted, bySubmission) {
		return false
	}
	for _, t := range l.found.list {
		if l.bytes += t.cost(); len(l.Rows) == limit || len(l.Rows) > 0 && l.bytes > interlock.MaxReadBytes {
			l.More = true
			break
		}
		l.Rows = append(l.Rows, e.showTask(t))
		l.Next = t.num
	}
	return true
}

func bySubmission(a, b *task) int { return cmp.Compare(a.num, b.num) }

// QueueStatus returns how a queue stands, and whether it is registered.
func (e *Engine) QueueStatus(ns interlock.Namespace, name string) (interlock.QueueStatus, bool) {
	q := e.turnTo(ns).registered(name)
	if q == nil {
		return interlock.QueueStatus{}, false
	}
	return e.showQueue(q), true
}

// QueueList lists the registered queues in the order of their names.
type QueueList struct {
	Namespace interlock.Namespace

	Rows []interlock.QueueStatus

	found []*queue
	next  int
}

func (l *QueueList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	if l.found == nil {
		l.found = s.sortedQueues()
	}
	for looked := 0; looked < glances && l.next < len(l.found); l.next++ {
		q := l.found[l.next]
		if looked++; q.registered {
			l.Rows = append(l.Rows, e.showQueue(q))
		}
	}
	return l.next == len(l.found)
}

// showQueue shares the definition's groups and approvers with the engine: a changed queue has
// new ones, and these do not change.
func (e *Engine) showQueue(q *queue) interlock.QueueStatus {
	v := interlock.QueueStatus{
		TaskQueue: q.TaskQueue, Scheduled: q.counts[interlock.TaskScheduled], Waiting: q.counts[interlock.TaskWaiting],
		Running: q.counts[interlock.TaskRunning], Asking: q.counts[interlock.TaskAsking], Dead: q.counts[interlock.TaskDead], Idle: q.idle(),
	}
	if q.lined.Len() > 0 {
		v.Oldest = e.now.Sub(q.lined.Front().Value.since)
	}
	return v
}

func (s *namespace) sortedQueues() []*queue {
	return slices.SortedFunc(maps.Values(s.tasks.queues), func(a, b *queue) int { return strings.Compare(a.Name, b.Name) })
}

// findTask returns a task. If there is none, the command is refused.
func (e *Engine) findTask(id interlock.TaskID) *task {
	if s := e.pendingWork.ns; s != nil {
		if t := s.tasks.known[id]; t != nil {
			return t
		}
	}
	e.refuse(interlock.CodeUnknownTask, message.New(message.UnknownTask))
	return nil
}

// taskAgain describes the task of an earlier answer, as far as it is still known.
func (e *Engine) taskAgain(a *storedAnswer) interlock.Task {
	if t := e.pendingWork.ns.tasks.known[a.id]; t != nil {
		return e.showTask(t)
	}
	return interlock.Task{ID: a.id}
}
