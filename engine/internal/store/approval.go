package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// pauseQuestions extends the open questions by the period before a term in which no answer was
// possible: since the last event, as far as the journal knows.
func (st *State) pauseQuestions(now Time, idle time.Duration) {
	if idle <= 0 {
		return
	}
	for _, s := range st.Sorted() {
		s.pauseParkings(now, idle)
		for t := range s.Tasks.Asking.All {
			if a := t.Spec.Approval; a.Limit > 0 {
				a.Paused = min(a.Paused+idle, now.Sub(a.Asked))
			}
		}
	}
}

// LeastApprovals is the number of approvals that the queue requires for a question: 0 if it neither
// restricts the approvers of its tasks nor names a number. nil is a queue that was not set.
func (q *Queue) LeastApprovals() int {
	if q == nil {
		return 0
	}
	return max(q.MinApprovals, min(1, len(q.Approvers)))
}

// LeastApprovals is the number for the question about the task. A queue that is changed afterwards requires
// no less, since its operator may have asked; if it is not 0, a timeout never approves.
func (t *Task) LeastApprovals() int { return max(t.Queue.LeastApprovals(), t.Spec.Approval.Least) }

// OnLimit returns how the question about the task answers itself.
func (t *Task) OnLimit() interlock.Verdict {
	if t.LeastApprovals() > 0 {
		return interlock.Denied
	}
	return t.Spec.Approval.OnLimit
}

// StrictLimit warns if the question about the task denies when its time is up, although its
// asker wants it to approve then.
func (t *Task) StrictLimit() []*message.Text {
	a := t.Spec.Approval
	if a == nil || a.Limit == 0 || a.OnLimit == t.OnLimit() {
		return nil
	}
	return []*message.Text{message.New(message.LimitDenies, message.Str(t.Queue.Name))}
}

// NotApprover returns why a caller cannot answer questions about tasks of the queue, nil if
// it can.
func (q *Queue) NotApprover(by *interlock.Principal) *Refusal {
	if by.Listed(q.Approvers) {
		return nil
	}
	if by == nil {
		return &Refusal{
			Code: interlock.CodeForbidden, Message: message.New(message.ApproversWithoutCredentials, message.Str(q.Name)),
		}
	}
	return &Refusal{
		Code:    interlock.CodeForbidden,
		Message: message.New(message.NotAnApprover, message.Str(by.Name), message.Str(q.Name), quoted(q.Approvers)),
	}
}

// NotAnsweredBy returns why what counts as the act of some principals cannot answer the question about the
// task, nil if it can. Without a name it is a caller of a server that asks for no credentials.
func (t *Task) NotAnsweredBy(principals []string) *Refusal {
	for _, p := range principals {
		var part *message.Text
		switch {
		case p == "":
			continue
		case t.Spec.Principal == p:
			part = message.New(message.SubmittedTask)
		case slices.Contains(t.Spec.Approval.Askers, p):
			part = message.New(message.AskedOrWorked)
		default:
			continue
		}
		return &Refusal{
			Code: interlock.CodeForbidden, Message: message.New(message.OwnWork, message.Str(p), message.Sub(part)),
		}
	}
	return nil
}

// IsUnused reports whether the task has an approval that no attempt has used.
func (t *Task) IsUnused() bool { return t.Spec.Approval != nil && t.Spec.Approval.UsedIn == 0 }

// keepApproval folds that the attempts of the task are n by now: the last one did not begin after all, or they are
// counted anew.
func (t *Task) keepApproval(n int) {
	switch a := t.Spec.Approval; {
	case a == nil || a.UsedIn == 0:
	case t.State.IsSettled():
		a.Replayed = true
	case t.IsFirstUse() && n < a.UsedIn:
		a.UsedIn = 0
	}
}

// IsFirstUse reports whether the running attempt is the one that used the approval of the task first.
func (t *Task) IsFirstUse() bool {
	a := t.Spec.Approval
	return t.State == interlock.TaskRunning && int(t.Attempt) == a.UsedIn && !a.Replayed
}

// IsSpent reports whether a replay of the task has to ask again: an attempt has used its approval.
func (t *Task) IsSpent() bool {
	a := t.Spec.Approval
	return a != nil && a.UsedIn > 0 && t.Queue.Approval == interlock.ApprovalOnce
}

// IsUnapproved reports whether the task has a question that was not answered with yes.
func (t *Task) IsUnapproved() bool {
	a := t.Spec.Approval
	return a != nil && a.Verdict != interlock.Approved
}

// AskedAt returns the place of a task among those that ask.
func (t *Task) AskedAt() AskedAt { return AskedAt{t.Spec.Approval.Asked, t.Num} }

// askedBefore orders tasks by when they asked.
func (t *Task) askedBefore(o *Task) bool { return t.AskedAt().Compare(o.AskedAt()) < 0 }

// evolveApprovalRequested folds that the worker of a task asks a person.
func (st *State) evolveApprovalRequested(ev *record.Event) error {
	t := st.Namespace(ev.Namespace).Tasks.Known[ev.ID]
	if t == nil || t.State != interlock.TaskRunning || interlock.TaskState(ev.Op) != interlock.TaskAsking {
		return errUnknown
	}
	a, err := record.DecodeApproval(ev.Blob, ev.At)
	if err != nil {
		return err
	}
	a.Agent = ev.Agent
	t.remember(func() { t.Spec.Extend(func(x *record.TaskExtras) { x.Approval = a }) })
	t.Attempt = int32(ev.Generation)
	return st.stands(t, ev)
}

// evolveApprovalDecided folds that a task's question is answered.
func (st *State) evolveApprovalDecided(ev *record.Event) error {
	t := st.Namespace(ev.Namespace).Tasks.Known[ev.ID]
	if t == nil || t.State != interlock.TaskAsking {
		return errUnknown
	}
	v := interlock.Approved
	if interlock.TaskState(ev.Op) == interlock.TaskDead {
		v = interlock.Denied
	}
	principal, acted, why, err := ev.Verdict()
	if err != nil {
		return err
	}
	if interlock.TaskState(ev.Op) == interlock.TaskAsking { // one of several approvals
		t.remember(func() {
			t.Spec.Approval.Give(interlock.Endorsement{Principal: principal, By: ev.Agent, Reason: ev.Note}, acted)
		})
		return nil
	}
	t.remember(func() {
		a := t.Spec.Approval
		a.Verdict, a.By, a.Principal = v, ev.Agent, principal
		a.SetWhy(why)
	})
	t.Attempt = int32(ev.Generation)
	return st.stands(t, ev)
}

// AskedAt is a place among the tasks that ask a person, in the order in which they asked.
type AskedAt struct {
	Time Time
	Num  uint64 // of the task; the earlier submitted come first
}

func (a AskedAt) Compare(b AskedAt) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Num, b.Num))
}
