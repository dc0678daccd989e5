package engine

import (
	"cmp"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// Task describes a task, and reports whether it is known.
func (e *Engine) Task(ns interlock.Namespace, id interlock.TaskID) (Task, bool) {
	s := e.turnTo(ns)
	if s == nil || s.Tasks.Known[id] == nil {
		return Task{}, false
	}
	return s.Tasks.Known[id].ShowInLine(), true
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

	Rows []Task
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
		l.Rows = append(l.Rows, t.Show())
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
	return q.Status(), true
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
			l.Rows = append(l.Rows, q.Status())
		}
	}
	return l.next == len(l.found)
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
func (e *Engine) taskAgain(a *store.StoredAnswer) Task {
	if t := e.PendingWork.NS.Tasks.Known[a.ID]; t != nil {
		return t.Show()
	}
	return Task{Task: interlock.Task{ID: a.ID}}
}
