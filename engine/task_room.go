package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
)

// The cost of remembering the tasks of a namespace, and how they are forgotten to make room.
//
// A task is refused when there is no room for it beside those that are not done. Later growth
// of tasks, such as a result, or the reason why an attempt has failed, is never refused: done
// tasks make room for it, oldest first, and when there are none left, tasks forget all attempts
// but the last. One change forgets few tasks, since each of them counts interlock.TaskBytes at
// least.

// cost returns the bytes of interlock.MaxTaskBytes that a task counts.
func (t *task) cost() int { return t.spec.Cost() + t.taskHistory.cost() }

// attemptBytes is the cost of an ended attempt besides its texts.
const attemptBytes = 128

func (x *taskHistory) cost() int {
	n := len(x.reason)
	for i := range x.past {
		a := &x.past[i]
		n += attemptBytes + len(a.agent) + len(a.session) + len(a.words)
	}
	return n
}

// remember changes what is remembered of a task, and counts it.
func (t *task) remember(change func()) {
	s, was := &t.queue.ns.tasks, t.cost()
	change()
	more := t.cost() - was
	s.bytes += more
	if t.state == interlock.TaskDone {
		s.settled += more
	}
}

// setReason keeps why a task is dead or cancelled, or fails.
func (t *task) setReason(reason string) {
	if reason != t.reason {
		t.remember(func() { t.own().reason = reason })
	}
}

// failed keeps an attempt that has ended.
func (t *task) failed(a attempt) {
	t.remember(func() {
		x := t.own()
		x.past = append(x.past, a)
	})
}

// trimPast forgets the oldest attempts when there are too many, or no room for them.
func (t *task) trimPast() {
	s, most := &t.queue.ns.tasks, interlock.MaxKeptAttempts
	if s.makeRoom(); s.bytes > interlock.MaxTaskBytes {
		most = 1
	}
	if extra := len(t.past) - most; extra > 0 {
		t.remember(func() { t.past = append(t.past[:0:0], t.past[extra:]...) })
	}
}

// makeRoom forgets settled tasks when there are too many of them, or no room for them;
// done ones go first.
func (s *tasks) makeRoom() {
	for s.done.Len()+s.failed.Len() > interlock.MaxSettledTasks || s.bytes > interlock.MaxTaskBytes && s.done.Len() > 0 {
		oldest := s.done.Front()
		if oldest == nil {
			oldest = s.failed.Front()
		}
		oldest.Value.forget()
	}
}

// noRoomForTasks returns why there is no room for bytes more of tasks that are not done,
// nil if there is.
func (s *namespace) noRoomForTasks(bytes int) *refusal {
	if s.tasks.bytes-s.tasks.settled+bytes <= interlock.MaxTaskBytes {
		return nil
	}
	return &refusal{code: interlock.CodeTooManyTasks, message: message.New(message.TasksTooLarge, message.Str(s.name), message.Num(interlock.MaxTaskBytes))}
}
