package record

import (
	"cmp"
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

// Task is the submitted part of a task.
type Task struct {
	Claims   []interlock.Claim
	Payload  []byte
	Purpose  string
	Priority int32

	Message bool // to the single writer of the key that it claims

	Submitted Time
	*Address
	*TaskExtras
}

// TaskExtras are the rarely used parts of a task. Tasks without any share an empty one.
type TaskExtras struct {
	Due        Time // 0: at once
	Deadline   Time // 0: none
	Attempts   int  // 0: the queue's, as of the others
	Backoff    time.Duration
	MaxBackoff time.Duration
	Result     []byte // of one that is done
	Approval   *Approval
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
	if x.Due == 0 && x.Deadline == 0 && x.Attempts == 0 && x.Backoff == 0 && x.MaxBackoff == 0 && len(x.Result) == 0 &&
		x.Approval == nil {
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
	f := Fields{}
	f.Text(1, s.Queue)
	if s.Kind != "" {
		f.Text(2, s.Kind)
	}
	if len(s.Payload) > 0 {
		f.Text(3, string(s.Payload))
	}
	if s.Due != 0 {
		f.Number(4, uint64(s.Due.Sub(s.Submitted)))
	}
	if s.Deadline != 0 {
		f.Number(5, uint64(s.Deadline.Sub(s.Submitted)))
	}
	f.Number(6, uint64(s.Attempts))
	f.Number(7, uint64(s.Backoff))
	f.Number(8, uint64(s.MaxBackoff))
	if s.Session != "" {
		f.Text(9, s.Session)
	}
	if len(s.Result) > 0 {
		f.Text(10, string(s.Result))
	}
	if s.Approval != nil {
		f.Text(11, string(AppendApproval(nil, s.Approval, s.Submitted)))
	}
	f.Flag(12, s.Message)
	if s.Sender != "" {
		f.Text(13, s.Sender)
	}
	ev.Blob, ev.Claims, ev.Purpose, ev.Group, ev.Priority = f.Bytes, s.Claims, s.Purpose, s.Group, int(s.Priority)
	ev.Agent, ev.Flow, ev.Actor = s.Agent, s.Flow, s.Principal
}

// DecodeTask reads what describe wrote.
func DecodeTask(ev *Event) (*Task, error) {
	s := &Task{
		Claims: ev.Claims, Purpose: ev.Purpose, Priority: int32(ev.Priority), Submitted: ev.At,
		Address: &Address{Group: ev.Group, Agent: ev.Agent, Flow: ev.Flow, Principal: ev.Actor},
	}
	var x TaskExtras
	var failed error
	err := EachField(ev.Blob, func(id, n uint64, text string) bool {
		switch id {
		case 1:
			s.Queue = text
		case 2:
			s.Kind = text
		case 3:
			s.Payload = []byte(text)
		case 4:
			x.Due = ev.At.Add(time.Duration(n))
		case 5:
			x.Deadline = ev.At.Add(time.Duration(n))
		case 6:
			x.Attempts = int(n)
		case 7:
			x.Backoff = time.Duration(n)
		case 8:
			x.MaxBackoff = time.Duration(n)
		case 9:
			s.Session = text
		case 10:
			x.Result = []byte(text)
		case 11:
			x.Approval, failed = DecodeApproval([]byte(text), ev.At)
		case 12:
			s.Message = true
		case 13:
			s.Sender = text
		default:
			return false
		}
		return true
	})
	s.TaskExtras = x.Kept()
	if err == nil && (s.Queue == "" || s.Message && len(s.Claims) != 1) {
		err = ErrMalformed
	}
	return s, cmp.Or(err, failed)
}

// Mailbox is the key to which a message is.
func (s *Task) Mailbox() interlock.Key { return s.Claims[0].Key }

// ClaimsKey reports whether a task claims just this key.
func (s *Task) ClaimsKey(key interlock.Key) bool {
	return slices.ContainsFunc(s.Claims, func(c interlock.Claim) bool { return c.Key == key })
}

// Cost counts what tasks share for each of them.
func (s *Task) Cost() int {
	n := interlock.TaskBytes + len(s.Payload) + len(s.Result) + len(s.Purpose) + s.Approval.Size() + s.Address.Size()
	for i := range s.Claims {
		n += interlock.TaskClaimBytes + len(s.Claims[i].Key)
	}
	return n
}
