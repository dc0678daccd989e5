package store

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

// Cost returns the bytes of interlock.MaxTaskBytes that a task counts.
func (t *Task) Cost() int { return t.Spec.Cost() + t.TaskHistory.cost() }

// attemptBytes is the cost of an ended attempt besides its texts.
const attemptBytes = 128

func (x *TaskHistory) cost() int {
	n := x.Reason.Size()
	for i := range x.Past {
		a := &x.Past[i]
		n += attemptBytes + len(a.Agent) + len(a.Session) + a.Words.Size()
	}
	return n
}

// remember carries out a change of a task's stored form, and updates the size of all.
func (t *Task) remember(change func()) {
	s, was := &t.Queue.NS.Tasks, t.Cost()
	change()
	more := t.Cost() - was
	s.Bytes += more
	if t.State == interlock.TaskDone {
		s.Settled += more
	}
}

// setReason keeps why a task is dead or cancelled, or fails.
func (t *Task) setReason(reason *message.Text) {
	if reason != nil || t.Reason != nil {
		t.remember(func() { t.Own().Reason = reason })
	}
}

// failed keeps an attempt that has ended.
func (t *Task) failed(a attempt) {
	t.remember(func() {
		x := t.Own()
		x.Past = append(x.Past, a)
	})
}

// trimPast forgets the oldest attempts when there are too many, or no room for them.
func (t *Task) trimPast() {
	s, most := &t.Queue.NS.Tasks, interlock.MaxKeptAttempts
	if s.makeRoom(); s.Bytes > interlock.MaxTaskBytes {
		most = 1
	}
	if extra := len(t.Past) - most; extra > 0 {
		t.remember(func() { t.Past = append(t.Past[:0:0], t.Past[extra:]...) })
	}
}

// makeRoom forgets settled tasks when there are too many of them, or no room for them;
// done ones go first.
func (s *Tasks) makeRoom() {
	for s.Done.Len()+s.Failed.Len() > interlock.MaxSettledTasks || s.Bytes > interlock.MaxTaskBytes && s.Done.Len() > 0 {
		oldest := s.Done.Front()
		if oldest == nil {
			oldest = s.Failed.Front()
		}
		oldest.Value.forget()
	}
}

// NoRoomForTasks returns why there is no room for bytes more of tasks that are not done,
// nil if there is.
func (s *Namespace) NoRoomForTasks(bytes int) *Refusal {
	if s.Tasks.Bytes-s.Tasks.Settled+bytes <= interlock.MaxTaskBytes {
		return nil
	}
	return &Refusal{
		Code:    interlock.CodeTooManyTasks,
		Message: message.New(message.TasksTooLarge, message.Str(s.Name), message.Num(interlock.MaxTaskBytes)),
	}
}
