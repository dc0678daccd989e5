package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
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

// lane is the messages of one sender to one key that are not settled.
type lane struct {
	collection.Heap[*lanePosition]
	id    laneID
	waits collection.List[*follower] // volatile: flows that wait for the ends of these messages
}

type laneID struct {
	key    interlock.Key
	sender string
}

// lanePosition is a message's place in its lane.
type lanePosition struct {
	task *task
	lane *lane
	slot int32
}

func (m *lanePosition) HeapIndex() *int32         { return &m.slot }
func (m *lanePosition) Less(o *lanePosition) bool { return m.task.num < o.task.num }

// isFor reports whether t is a message for the writer's queue.
func (t *task) isFor(queue string) bool {
	return t != nil && t.spec.Message && t.queue.Name == queue
}

// ahead returns the message that holds t back: the first of its lane, if that is
// another; nil for none.
func (t *task) ahead() *task {
	if t.mail == nil {
		return nil
	}
	if first := t.mail.lane.Heap[0]; first != t.mail {
		return first.task
	}
	return nil
}

// joinLane makes a message that is not settled one of its lane. If it was sent before
// the one that was the first so far, that steps out of line.
func (e *State) joinLane(t *task) {
	if !t.spec.Message || t.spec.Sender == "" {
		return
	}
	s := &t.queue.ns.tasks
	id := laneID{t.spec.Mailbox(), t.spec.Sender}
	l := s.lanes[id]
	if l == nil {
		l = &lane{id: id}
		if s.lanes == nil {
			s.lanes = map[laneID]*lane{}
		}
		s.lanes[id] = l
	}
	t.own().mail = &lanePosition{task: t, lane: l}
	first := t.mail
	if len(l.Heap) > 0 {
		first = l.Heap[0]
	}
	if l.Push(t.mail); first.task.ahead() != nil {
		e.stepBack(first.task)
	}
}

// leaveLane takes a message that is settled out of its lane, and lets the next one that
// waits stand in line.
func (e *State) leaveLane(t *task) {
	if t.mail == nil {
		return
	}
	l := t.mail.lane
	for f := range t.followers.All {
		if f.wait != nil {
			l.waits.Remove(&f.inLane)
		}
	}
	l.Remove(t.mail)
	t.own().mail = nil
	t.tidy()
	if len(l.Heap) == 0 {
		delete(t.queue.ns.tasks.lanes, l.id)
		return
	}
	if first := l.Heap[0].task; first.state == interlock.TaskWaiting && first.request == nil {
		e.queueTask(first, false)
	}
}

// successor returns the message that continues once t is settled, nil for none: the first of
// its lane, which t held back. If t was not the first itself, it held back others only.
func (t *task) successor() *task {
	if !t.spec.Message {
		return nil
	}
	l := t.queue.ns.tasks.lanes[laneID{t.spec.Mailbox(), t.spec.Sender}]
	if l == nil {
		return nil
	}
	first := l.Heap[0].task
	if first.num < t.num || first.state != interlock.TaskWaiting {
		return nil
	}
	return first
}

// address turns a message, which names its recipient, into a task of the writer's queue, or
// returns the reason why it cannot.
func (x *TaskSpec) address(s *namespace) *refusal {
	if no := checkDocumentKey(x.Key); no != nil {
		return no
	}
	p, no := s.spell(&x.Key)
	if no != nil {
		return no
	}
	if p == nil || p.WriterQueue == "" {
		return &refusal{code: interlock.CodeNoWriter, key: x.Key, message: message.New(message.NoWriter, message.Str(x.Key))}
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
		return "session:" + by.sess.name
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

	found first[*task]
	next  int
	taken map[*taskGroup]bool // whether an idle worker may hold the tasks of a shelf; within one Look
}

// HeldTask is a row of HeldBack.
type HeldTask struct {
	Task   interlock.Task
	Behind int   // later messages of the same sender to the key, which wait for this one
	Bars   []Bar // what keeps the idle workers from it, if it is barred
}

func (l *HeldBack) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	l.found.limit = maxHeldBack + 1
	l.taken = map[*taskGroup]bool{}
	if !sift(&l.found, s.tasks.all.Part, &l.next, l.wants, bySubmission) {
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
		row := HeldTask{Task: e.showTask(t)}
		if t.mail != nil {
			row.Behind = len(t.mail.lane.Heap) - 1
		}
		if l.isBarred(t) {
			row.Task.Barred, row.Bars = true, t.bars()
		}
		l.Rows = append(l.Rows, row)
	}
	return true
}

// wants reports whether the task explains something: one that asks or is barred does, and a
// scheduled message if others are behind it. A task that is held back itself explains nothing.
func (l *HeldBack) wants(t *task) bool {
	switch {
	case l.Key != "" && !t.spec.ClaimsKey(l.Key) || l.Key == "" && t.spec.Agent != l.Agent || t.ahead() != nil:
		return false
	case t.state == interlock.TaskScheduled:
		return t.mail != nil && len(t.mail.lane.Heap) > 1
	}
	return t.state == interlock.TaskAsking || l.isBarred(t)
}

// isBarred is task.isBarred; it checks once for all tasks under the same rules.
func (l *HeldBack) isBarred(t *task) bool {
	s := t.shelf
	if s == nil || s.lot.isStale(t.queue.ns) {
		return t.isBarred()
	}
	taken, known := l.taken[s]
	if !known {
		taken = t.queue.hasWorker(t)
		l.taken[s] = taken
	}
	return !taken && t.couldRun()
}
