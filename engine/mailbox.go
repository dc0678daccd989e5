package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// Messages: tasks for the single writer of a key.
//
// A message is a task of the queue that the key's pattern names as its writer, with an
// exclusive claim on the key and no other. So the messages to a key are done one after the
// other, and only the acknowledgement of one may change its document (write_policy.go). The
// key's log has their outcomes (log.go).
//
// The messages of one sender to one key are a lane. Its unsettled messages go in the order of
// sending: only the first of them may stand in line, whatever their priorities, and whether it
// waits, runs, is scheduled again or asks a person. The others wait behind it and block no
// other request. A person's answer is part of the order: a debit that was sent after a credit
// counts on it, approved or denied. HeldBack describes what holds a lane back.

// address turns a message, which names its recipient, into a task of the writer's queue, or
// returns the reason why it cannot.
func (x *TaskSpec) address(s *store.Namespace) *store.Refusal {
	if no := checkDocumentKey(x.Key); no != nil {
		return no
	}
	p, no := s.Spell(&x.Key)
	if no != nil {
		return no
	}
	if p == nil || p.WriterQueue == "" {
		return &store.Refusal{
			Code: interlock.CodeNoWriter, Key: x.Key, Message: message.New(message.NoWriter, message.Str(x.Key)),
		}
	}
	x.Queue, x.Claims = p.WriterQueue, []interlock.Claim{{Key: x.Key, Mode: lockmode.X}}
	return nil
}

// senderOf returns the name under which the messages of a submitter are kept in order. It
// begins with its kind, so no name can pass for a sender of another kind. A principal without a
// session may stand for many agents: each of them, or each flow of one without a name, is a
// sender. A principal's name has no space in it.
//
// A task keeps the sender with which it was submitted. In journals of earlier versions that
// is the principal alone.
func (by *submitter) senderOf() string {
	switch {
	case by.writer != "":
		return "key:" + string(by.writer)
	case by.sess != nil:
		return "session:" + by.sess.Name
	case by.principal != "" && by.agent != "":
		return "principal:" + by.principal + " agent:" + by.agent
	case by.principal != "" && by.flow != "":
		return "principal:" + by.principal + " flow:" + by.flow
	case by.principal != "":
		return "principal:" + by.principal
	case by.agent != "":
		return "agent:" + by.agent
	}
	return ""
}

// maxHeldBack bounds the rows of HeldBack.
const maxHeldBack = 16

// HeldBack lists tasks that explain why nothing happens: those for a key, or those that an
// agent submitted. They stand in no line, as they wait for a person or until they are due,
// and among messages hold back the later ones of their lane; or they are barred: workers are
// idle, and none of them may hold the task.
type HeldBack struct {
	Namespace interlock.Namespace
	Key       interlock.Key // as it is spelled in claims; "": see Agent
	Agent     string

	Rows []HeldTask // in the order of submission, at most 16
	More bool       // there are more

	found first[*store.Task]
	next  int
	taken map[*store.TaskGroup]bool // whether an idle worker may hold the tasks of a shelf; within one Look
}

// HeldTask is a row of HeldBack.
type HeldTask struct {
	Task   Task
	Behind int         // later messages of the same sender to the key, which wait for this one
	Bars   []store.Bar // what keeps the idle workers from it, if it is barred
}

func (l *HeldBack) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	l.found.limit = maxHeldBack + 1
	l.taken = map[*store.TaskGroup]bool{}
	if !sift(&l.found, s.Tasks.All.Part, &l.next, l.wants, bySubmission) {
		return false
	}
	for _, t := range l.found.list {
		if !l.wants(t) {
			continue // any more
		}
		if len(l.Rows) == maxHeldBack {
			l.More = true
			break
		}
		row := HeldTask{Task: t.Show()}
		if t.Mail != nil {
			row.Behind = len(t.Mail.Lane.Heap) - 1
		}
		if l.isBarred(t) {
			row.Task.Barred, row.Bars = true, t.Bars()
		}
		l.Rows = append(l.Rows, row)
	}
	return true
}

// wants reports whether the task explains something: one that asks or is barred does, and a
// scheduled message if others are behind it. A task that is held back itself explains nothing.
func (l *HeldBack) wants(t *store.Task) bool {
	switch {
	case l.Key != "" && !t.Spec.ClaimsKey(l.Key) || l.Key == "" && t.Spec.Agent != l.Agent || t.Ahead() != nil:
		return false
	case t.State == interlock.TaskScheduled:
		return t.Mail != nil && len(t.Mail.Lane.Heap) > 1
	}
	return t.State == interlock.TaskAsking || l.isBarred(t)
}

// IsBarred is task.IsBarred; it checks once for all tasks under the same rules.
func (l *HeldBack) isBarred(t *store.Task) bool {
	s := t.Shelf
	if s == nil || s.Lot.IsStale(t.Queue.NS) {
		return t.IsBarred()
	}
	taken, known := l.taken[s]
	if !known {
		taken = t.Queue.HasWorker(t)
		l.taken[s] = taken
	}
	return !taken && t.CouldRun()
}
