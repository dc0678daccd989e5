package store

import "github.com/interlockdev/interlock"

// Show describes a task.
func (t *Task) Show() TaskView {
	s := t.Spec
	v := TaskView{Reason: t.Reason, Approval: t.showApproval(), Task: interlock.Task{
		ID: t.ID, Queue: t.Queue.Name, Kind: s.Kind, Claims: s.Claims, Payload: s.Payload, Purpose: s.Purpose, Group: s.Group,
		Priority: int(s.Priority), State: t.State, Agent: s.Agent, Session: s.Session, Flow: s.Flow, Principal: s.Principal,
		Sender: s.Sender, Trace: s.Trace,
		Age: t.Queue.NS.Now().Sub(s.Submitted), Attempt: int(t.Attempt), MaxAttempts: t.MaxAttempts(), Result: s.Result,
		DoneBy: s.DoneBy,
	}}
	if t.State == interlock.TaskScheduled {
		v.Due = max(0, s.Due.Sub(t.Queue.NS.Now()))
	}
	if s.Deadline != 0 && !t.State.IsSettled() {
		v.Deadline = max(1, s.Deadline.Sub(t.Queue.NS.Now()))
	}
	if t.State.IsSettled() {
		v.Settled = max(1, t.Queue.NS.Now().Sub(t.Since))
	}
	for i := range t.Past {
		a := &t.Past[i]
		v.Attempts = append(v.Attempts, AttemptView{Reason: a.Words, Attempt: interlock.Attempt{
			Number: a.Number, Agent: a.Agent, Session: a.Session, Fence: a.Fence, EndedBy: a.Why.String(), Held: a.Held,
			Age: t.Queue.NS.Now().Sub(a.Ended),
		}})
	}
	return v
}

// ShowInLine is Show with the position of a task that waits, and with the changes since a person was
// asked about it.
func (t *Task) ShowInLine() TaskView {
	v := t.Show()
	t.Revalidate(&v)
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
		v.Blocker, v.Position, v.ETA = interlock.Key(n.Key), 1, r.Ticket().ETA
		for c := n.Line.First; c != nil; c = c.Next {
			if c.Queue == t.Queue {
				v.Position += c.CountBefore(r)
			}
		}
	}
	v.Barred = t.IsBarred()
	return v
}

// showApproval describes the question about a task, nil for none.
func (t *Task) showApproval() *ApprovalView {
	a := t.Spec.Approval
	if a == nil {
		return nil
	}
	v := &ApprovalView{Reason: a.Why(), Approval: interlock.Approval{
		Question: a.Text, Agent: a.Agent, Asked: t.Queue.NS.Now().Sub(a.Asked), OnLimit: t.OnLimit(),
		Verdict: a.Verdict, By: a.By,
		Principal: a.Principal, Approvals: a.Given,
	}}
	if n := t.LeastApprovals(); n > 1 && t.State == interlock.TaskAsking {
		v.Needed = n
	}
	if !t.IsFirstUse() {
		v.UsedIn = a.UsedIn
	}
	if t.State == interlock.TaskAsking && a.Limit > 0 {
		v.Left = max(1, a.Until().Sub(t.Queue.NS.Now()))
	}
	return v
}

// Revalidate adds the changes since the asker of t's question read to v, which describes t. It adds
// none to a settled task.
func (t *Task) Revalidate(v *TaskView) {
	if a := t.Spec.Approval; a != nil && !t.State.IsSettled() {
		v.Approval.Stale, v.Approval.StaleMore = t.Queue.NS.Documents.Stale(
			&interlock.CommitRequest{Reads: a.Reads}, t.Queue.NS.Now(),
		)
	}
}

// Status describes the queue. It shares the slices of the definition, which never change: a changed
// queue has new ones.
func (q *Queue) Status() interlock.QueueStatus {
	v := interlock.QueueStatus{
		TaskQueue: q.TaskQueue, Scheduled: q.Counts[interlock.TaskScheduled], Waiting: q.Counts[interlock.TaskWaiting],
		Running: q.Counts[interlock.TaskRunning], Asking: q.Counts[interlock.TaskAsking], Dead: q.Counts[interlock.TaskDead],
		Idle: q.Idle(),
	}
	if q.Lined.Len() > 0 {
		v.Oldest = q.NS.Now().Sub(q.Lined.Front().Value.Since)
	}
	return v
}
