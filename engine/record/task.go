package record

import (
	"slices"
	"time"

	"github.com/interlockdev/interlock"
)

// Task returns the queue and the kind of the task that an TaskSubmitted submitted.
func (ev *Event) Task() (queue, kind string, err error) {
	spec, err := DecodeTask(ev)
	if err != nil {
		return "", "", err
	}
	return spec.Queue, spec.Kind, nil
}

// Task is the submitted part of a task. A field without a number is a field of the event.
type Task struct {
	Claims   []interlock.Claim `journal:"-"`
	Payload  []byte            `journal:"3"`
	Purpose  string            `journal:"-"`
	Priority int32             `journal:"-"`

	Message bool `journal:"12"` // to the single writer of the key that it claims

	Submitted Time `journal:"-"` // the time of the event
	*Address
	*TaskExtras `journal:"-"` // in storedTask
}

// TaskExtras are the rarely used parts of a task. Tasks without any share an empty one.
type TaskExtras struct {
	Due        Time          `journal:"4,since"` // 0: at once
	Deadline   Time          `journal:"5,since"` // 0: none
	Attempts   int           `journal:"6"`       // 0: the queue's, as of the others
	Backoff    time.Duration `journal:"7"`
	MaxBackoff time.Duration `journal:"8"`
	Result     []byte        `journal:"10"` // of one that is done
	DoneBy     string        `journal:"-"`  // the credential that acknowledged it, of the event; none in older journals
	Approval   *Approval     `journal:"11"`
	Trace      string        `journal:"-"` // W3C traceparent of the submission; none in older journals
}

// storedTask is a task in the blob of its event. While it is read, its extras are none that
// others share.
type storedTask struct {
	*Task
	*TaskExtras
}

// NoExtras is shared by all tasks without extras. It is never changed.
var NoExtras = &TaskExtras{}

// Extend changes the task's extras.
func (s *Task) Extend(change func(*TaskExtras)) {
	x := *s.TaskExtras
	change(&x)
	s.TaskExtras = &x
}

// Kept returns extras to keep, which cost nothing if there is nothing in them.
func (x TaskExtras) Kept() *TaskExtras {
	if x.Due == 0 && x.Deadline == 0 && x.Attempts == 0 && x.Backoff == 0 && x.MaxBackoff == 0 &&
		len(x.Result) == 0 && x.DoneBy == "" && x.Approval == nil && x.Trace == "" {
		return NoExtras
	}
	kept := x
	return &kept
}

// Revive drops a deadline that has passed.
func (s *Task) Revive(now Time) {
	if s.Deadline != 0 && s.Deadline <= now {
		s.Extend(func(x *TaskExtras) { x.Deadline = 0 })
	}
}

// Describe fills an event TaskSubmitted, but for where the task stands.
func (s *Task) Describe(ev *Event) {
	ev.Blob = appendStoredTask(nil, &storedTask{s, s.TaskExtras}, s.Submitted)
	ev.Claims, ev.Purpose, ev.Group, ev.Priority = s.Claims, s.Purpose, s.Group, int(s.Priority)
	ev.Agent, ev.Flow, ev.Actor, ev.Trace = s.Agent, s.Flow, s.Principal, s.Trace
}

// DecodeTask reads what Describe wrote.
func DecodeTask(ev *Event) (*Task, error) {
	s := &Task{
		Claims: ev.Claims, Purpose: ev.Purpose, Priority: int32(ev.Priority), Submitted: ev.At,
		Address: &Address{Group: ev.Group, Agent: ev.Agent, Flow: ev.Flow, Principal: ev.Actor},
	}
	x := TaskExtras{Trace: ev.Trace}
	err := readStoredTask(ev.Blob, &storedTask{s, &x}, ev.At)
	s.TaskExtras = x.Kept()
	if err == nil && s.Message && len(s.Claims) != 1 {
		err = ErrMalformed
	}
	return s, err
}

// Mailbox is the key to which a message is.
func (s *Task) Mailbox() interlock.Key { return s.Claims[0].Key }

// ClaimsKey reports whether a task claims just this key.
func (s *Task) ClaimsKey(key interlock.Key) bool {
	return slices.ContainsFunc(s.Claims, func(c interlock.Claim) bool { return c.Key == key })
}

// Cost counts what tasks share for each of them.
func (s *Task) Cost() int {
	n := interlock.TaskBytes + len(s.Payload) + len(s.Result) + len(s.DoneBy) + len(s.Purpose) + len(s.Trace) +
		s.Approval.Size() + s.Address.Size()
	for i := range s.Claims {
		n += interlock.TaskClaimBytes + len(s.Claims[i].Key)
	}
	return n
}
