package engine_test

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// The expected answers to submitters, workers and operators of tasks.

func (m *model) expectSubmit(c *engine.Submit) answer {
	if !c.Session.IsZero() {
		return m.withSession(&c.Head, func(s *session) answer {
			want := m.expectTasks(&c.Head, c.Task)
			if want.outcome == engine.Done && c.Attach && c.Flow == "" &&
				m.wouldHold(c.Namespace, s, m.submitted(c, c.Task.ID, 0).spec.Claims) {
				return refusalKey(interlock.CodeInvalidRequest)
			}
			return want
		})
	}
	return m.expectTasks(&c.Head, c.Task)
}

// expectTasks: tasks are taken in if nothing is wrong with any of them.
func (m *model) expectTasks(head *engine.Head, specs ...engine.TaskSpec) answer {
	var codes []interlock.Code
	for i := range specs {
		beside := 0
		for _, other := range specs[:i] {
			if m.queueFor(head.Namespace, &other) == m.queueFor(head.Namespace, &specs[i]) {
				beside++
			}
		}
		codes = append(codes, m.wrongTask(head, &specs[i], beside)...)
	}
	if len(codes) > 0 {
		return refusalKey(codes...)
	}
	return answer{outcome: engine.Done, check: func(got *engine.Effect) error { return m.checkTold(specs[0].ID, got) }}
}

// checkTold: the answer is about one task, and tells what was said of it.
func (m *model) checkTold(id interlock.TaskID, got *engine.Effect) error {
	if len(got.Tasks) != 1 || got.Tasks[0].ID != id {
		return fmt.Errorf("the answer is about %+v, not about task %s", got.Tasks, shortID(id))
	}
	for _, t := range m.tasks {
		if t.id == id &&
			(got.Tasks[0].Queue != t.spec.Queue || got.Tasks[0].Group != t.spec.Group ||
				!slices.Equal(got.Tasks[0].Claims, t.spec.Claims)) {
			return fmt.Errorf("%v is told as %+v", t, got.Tasks[0])
		}
	}
	return nil
}

// expectPull: a worker gets something if there is anything that could run.
func (m *model) expectPull(c *engine.Pull) answer {
	q := m.queue(c.Namespace, c.Queue)
	var s *session
	switch {
	case c.Max < 1 || c.Max > interlock.MaxPull || len(c.Leases) < c.Max:
		return refusalKey(interlock.CodeInvalidRequest)
	case c.TTL != 0 && (c.TTL < interlock.MinTTL || c.TTL > interlock.MaxTTL):
		return refusalKey(interlock.CodeInvalidTTL)
	case !c.Session.IsZero():
		if s = m.sessionByID(c.Namespace, c.Session); s == nil {
			return refusalKey(interlock.CodeUnknownSession)
		} else if s.ended {
			return refusalKey(interlock.CodeSessionEnded)
		}
	}
	if again := m.pulledBefore(c, s); again.outcome != 0 {
		return again
	}
	if q == nil {
		return refusalKey(interlock.CodeUnknownQueue)
	}
	by := principalOf(c.Actor)
	if !listed(q.Pull, by) || !mayTake(c.Queue, by) {
		return refusalKey(interlock.CodeForbidden)
	}
	m.asking, m.handing = &worker{pull: *c, session: s}, append(m.handing, *c)
	m.rest() // it looks at the dormant tasks
	ready, maybe := len(m.ready(c.Namespace, c.Queue, by)), len(m.atBest().ready(c.Namespace, c.Queue, by))
	w := m.asking
	return answer{outcome: engine.Granted, worker: w, check: func(got *engine.Effect) error {
		switch {
		case got.Outcome == engine.Queued && ready == 0 && got.Ticket.ID == c.ID:
			return nil // what it may get in the same step is reported separately
		case got.Outcome == engine.Granted && maybe > 0:
			return m.checkInHand(w, got)
		}
		return fmt.Errorf("of %d tasks that could run, the worker got %v, and is told %s", ready, w.handed, effectText(got))
	}}
}

// pulledBefore is the answer to a pull that was given something before: what of it is
// still in its worker's hands.
func (m *model) pulledBefore(c *engine.Pull, s *session) (again answer) {
	w := &worker{pull: *c, session: s}
	for _, id := range c.Leases[:c.Max] {
		r := m.byID(c.Namespace, id)
		if r == nil {
			continue
		}
		if r.task == nil || r.session != s && r.phase != over && r.phase != closed {
			return refusalKey(interlock.CodeInvalidRequest)
		}
		if r.active() && r.task.request == r {
			w.handed = append(w.handed, r)
		}
		again = answer{
			outcome: engine.Granted, worker: w, check: func(got *engine.Effect) error { return m.checkHanded(w, got) },
		}
	}
	return again
}

// checkInHand is checkHanded for an answer, which tells how the step has left what the
// worker was given.
func (m *model) checkInHand(w *worker, got *engine.Effect) error {
	left := worker{pull: w.pull, session: w.session}
	for _, r := range w.handed {
		if r.active() {
			left.handed = append(left.handed, r)
		}
	}
	if err := m.checkHanded(&left, got); err != nil {
		return err
	}
	for i, r := range left.handed {
		if err := m.checkLease(r, &got.Handed[i].Lease); err != nil {
			return err
		}
	}
	return nil
}

// checkHanded compares a worker's answer with what it was assigned.
func (m *model) checkHanded(w *worker, got *engine.Effect) error {
	if got.Ticket.ID != w.pull.ID || len(got.Handed) != len(w.handed) {
		return fmt.Errorf("the worker %s got %v, and is told of %d tasks", shortID(w.pull.ID), w.handed, len(got.Handed))
	}
	for i, h := range got.Handed {
		r := w.handed[i]
		if h.Task.ID != r.task.id || h.Task.State != interlock.TaskRunning ||
			string(h.Task.Payload) != string(r.task.spec.Payload) || h.AsOf != r.dispatchedAt && h.AsOf != m.version(r.ns) {
			return fmt.Errorf("the worker is told of %+v instead of %v", h.Task, r.task)
		}
		if err := m.checkReread(r.task, h.Task.Approval); err != nil {
			return err
		}
		if r.phase == held {
			if err := m.checkLease(r, &h.Lease); err != nil {
				return err
			}
		}
		var want []interlock.Document
		for _, c := range r.task.spec.Claims { // the lease may have been converted since
			want = append(want, m.documentNow(r.ns, c.Key))
		}
		if len(want) != len(h.Documents) {
			return fmt.Errorf("%v comes with the documents %+v, want %+v", r.task, h.Documents, want)
		}
		for i := range want {
			if err := sameDocument(want[i], h.Documents[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// withAttempt leads to an attempt that is its worker's, or past its hard end.
func (m *model) withAttempt(head *engine.Head, id interlock.LeaseID, then func(*request) answer) answer {
	r := m.byID(head.Namespace, id)
	switch {
	case r != nil && r.task != nil && (r.phase == over || r.phase == closed):
		if t := m.task(r.ns, r.task.id); t != nil && t.spec.Message && t.state == interlock.TaskDone {
			return refusalKey(interlock.CodeAlreadyReplied)
		}
		return refusalKey(interlock.CodeTaskMoved)
	case r != nil && r.task != nil && mine(head, r) && !mayTake(r.task.spec.Queue, principalOf(head.Actor)):
		return refusalKey(interlock.CodeForbidden)
	case r != nil && r.task != nil && mine(head, r):
		return then(r)
	case r != nil && (r.phase == over || r.phase == closed):
		return refusalKey(append(gone(r.subject()), interlock.CodeUnknownLease, interlock.CodeInvalidRequest)...)
	case r != nil && mine(head, r):
		return refusalKey(interlock.CodeInvalidRequest)
	}
	return refusalKey(interlock.CodeUnknownLease)
}

// commitOf is the commit that a command is or brings, nil for none.
func (m *model) commitOf(cmd engine.Command) *engine.Commit {
	switch c := cmd.(type) {
	case *engine.Commit:
		return c
	case *engine.Ack:
		commit := &engine.Commit{Head: c.Head, CommitRequest: interlock.CommitRequest{
			Reads: c.Reads, AsOf: c.AsOf, Writes: c.Writes, Note: c.Note, Leases: []interlock.LeaseID{c.Lease},
		}}
		if r := m.byID(c.Namespace, c.Lease); r != nil {
			commit.Agent, commit.Flow, commit.Session = m.agentOf(r), r.ask.Flow, interlock.SessionID{}
			if r.session != nil {
				commit.Session = r.session.id
			}
		}
		return commit
	}
	return nil
}

// expectAck: a task is done together with its writes and with what is to be done next,
// or nothing of it is.
func (m *model) expectAck(c *engine.Ack) answer {
	return m.withAttempt(&c.Head, c.Lease, func(r *request) answer {
		want := m.expectWrites(m.commitOf(c))
		if want.outcome == 0 {
			return want
		}
		if len(c.Tasks) > 0 {
			if next := m.expectTasks(&c.Head, c.Tasks...); next.outcome == engine.Refused {
				stale := want.check
				if want.outcome == engine.Done {
					stale = nil
				}
				return answer{outcome: engine.Refused, codes: append(want.codes, next.codes...), check: stale}
			}
		}
		return m.alsoTold(want, r.task.id)
	})
}

// alsoTold is an answer that tells of a task, too.
func (m *model) alsoTold(want answer, id interlock.TaskID) answer {
	check := want.check
	want.check = func(got *engine.Effect) error {
		if got.Outcome == engine.Done {
			if err := m.checkTold(id, got); err != nil {
				return err
			}
		}
		if check == nil {
			return nil
		}
		return check(got)
	}
	return want
}

func (m *model) expectNack(c *engine.Nack) answer {
	if c.Delay < -1 || c.Delay > interlock.MaxDelay {
		return refusalKey(interlock.CodeInvalidTTL)
	}
	return m.withAttempt(&c.Head, c.Lease, func(r *request) answer {
		return answer{outcome: engine.Done, check: func(got *engine.Effect) error { return m.checkTold(r.task.id, got) }}
	})
}

func (m *model) withTask(head *engine.Head, id interlock.TaskID, then func(*task) answer) answer {
	if t := m.task(head.Namespace, id); t != nil {
		return then(t)
	}
	return refusalKey(interlock.CodeUnknownTask)
}

func (m *model) expectChange(c *engine.ChangeTask) answer {
	return m.withTask(&c.Head, c.Task, func(t *task) answer {
		done := answer{outcome: engine.Done, check: func(got *engine.Effect) error { return m.checkTold(c.Task, got) }}
		q := m.queue(t.ns, t.spec.Queue)
		by := principalOf(c.Actor)
		own := by != nil && t.principal == by.Name && by.Roles&(interlock.RoleAgent|interlock.RoleMerger) != 0
		if !own && !mayAdminister(m.queueOf(t), by) {
			return refusalKey(interlock.CodeForbidden)
		}
		switch c.Change {
		case engine.CancelTask, engine.RescheduleTask:
			if t.isSettled() {
				return refusalKey(interlock.CodeTaskSettled)
			} else if t.state == interlock.TaskRunning {
				return refusalKey(interlock.CodeHeld)
			}
		case engine.ReplayTask:
			switch {
			case !t.isSettled():
				return refusalKey(interlock.CodeTaskNotSettled)
			case t.state == interlock.TaskDone:
				return refusalKey(interlock.CodeTaskSettled)
			case q == nil:
				return refusalKey(interlock.CodeUnknownQueue)
			case q.MaxTasks > 0 && len(m.openIn(t.ns, q.Name)) >= q.MaxTasks:
				return refusalKey(interlock.CodeTooManyTasks)
			}
		case engine.DiscardTask:
			if !t.isSettled() {
				return refusalKey(interlock.CodeTaskNotSettled)
			}
		}
		return done
	})
}

// expectWork works out the answers to the commands about tasks.
func (m *model) expectWork(cmd engine.Command) answer {
	head := cmd.Header()
	switch c := cmd.(type) {
	case *engine.SetQueue:
		return refusalKey(interlock.CodeInvalidQueue, "") // or Done: what is wrong with it the scripts say
	case *engine.SwitchQueue:
		q := m.queue(head.Namespace, c.Name)
		if q == nil {
			return refusalKey(interlock.CodeUnknownQueue)
		} else if !mayAdminister(&q.TaskQueue, principalOf(head.Actor)) {
			return refusalKey(interlock.CodeForbidden)
		}
		return answer{outcome: engine.Done}
	case *engine.DropQueue:
		if m.queue(head.Namespace, c.Name) == nil {
			return refusalKey(interlock.CodeUnknownQueue)
		} else if len(m.openIn(head.Namespace, c.Name)) > 0 || m.isWriter(head.Namespace, c.Name) {
			return refusalKey(interlock.CodeQueueInUse)
		}
		return answer{outcome: engine.Done}
	case *engine.Submit:
		return m.expectSubmit(c)
	case *engine.Pull:
		return m.expectPull(c)
	case *engine.Ack:
		return m.expectAck(c)
	case *engine.Nack:
		return m.expectNack(c)
	case *engine.AskHuman:
		return m.expectAsk(c)
	case *engine.Answer:
		return m.expectAnswer(c)
	case *engine.ChangeTask:
		return m.expectChange(c)
	case *engine.FollowTask:
		return m.expectFollow(c)
	}
	return answer{none: true}
}

// expectWorkAgain: a repeated command is answered with the present state of its task.
func (m *model) expectWorkAgain(cmd engine.Command, known *storedReply) answer {
	told := func(id interlock.TaskID) answer {
		return answer{outcome: engine.Done, check: func(got *engine.Effect) error { return m.checkTold(id, got) }}
	}
	switch c := cmd.(type) {
	case *engine.Submit:
		return told(known.task)
	case *engine.Nack, *engine.AskHuman:
		return told(known.task)
	case *engine.Answer:
		if c.Fence != 0 {
			return answer{outcome: engine.Done}
		}
		return told(c.Task)
	case *engine.ChangeTask:
		return told(c.Task)
	case *engine.Ack:
		return m.alsoTold(m.expectCommitted(m.commitOf(c), known.version), known.task)
	}
	return answer{outcome: known.outcome}
}

// heardWork records what is not journaled of workers: that one is idle.
func (m *model) heardWork(cmd engine.Command, got *engine.Effect) {
	switch c := cmd.(type) {
	case *engine.Pull:
		if m.asking != nil {
			m.dismiss("", func(w *worker) bool {
				return w.pull.Namespace == c.Namespace && w.pull.ID == c.ID && (c.Attach || w.pull.Link == c.Link)
			})
		}
		if c.Attach && got.Outcome == engine.Queued {
			m.workers = append(m.workers, m.asking)
		}
	case *engine.Leave:
		m.dismiss("", func(w *worker) bool { return w.pull.Namespace == c.Namespace && w.pull.ID == c.Ticket })
	}
}

// forgetWork: a new term begins without idle workers and followers of tasks; and every task is
// looked at again.
func (m *model) forgetWork() {
	m.workers = nil
	for _, f := range m.following(func(*follower) bool { return true }) {
		m.unfollow(f)
	}
	for _, t := range m.tasks {
		t.rested, t.rests, t.sleeps, t.trailed = false, false, false, false
	}
	for _, q := range m.queues {
		q.passed = nil
	}
}

// leaveWork takes in which workers have left.
func (m *model) leaveWork(c *engine.Detach) {
	s := m.sessionByID(c.Namespace, c.Session)
	m.dismiss("", func(w *worker) bool {
		meant := s != nil && w.session == s
		if !c.Ticket.IsZero() {
			meant = w.pull.ID == [16]byte(c.Ticket)
		}
		return w.pull.Namespace == c.Namespace && meant && w.pull.Link == c.Link
	})
}

// checkWork checks the effects for workers and followers of tasks, and returns the other
// effects.
func (m *model) checkWork(effects []engine.Effect) (rest []engine.Effect, err error) {
	take := func(which func(*engine.Effect) bool) *engine.Effect {
		i := slices.IndexFunc(effects, func(e engine.Effect) bool { return which(&e) })
		if i < 0 {
			return nil
		}
		found := effects[i]
		effects = slices.Delete(effects, i, i+1)
		return &found
	}
	for _, w := range m.workers {
		if len(w.handed) == 0 {
			continue
		}
		got := take(func(e *engine.Effect) bool {
			return e.To == w.pull.From && e.Outcome == engine.Granted && len(e.Handed) > 0
		})
		if got == nil {
			return nil, fmt.Errorf("the worker %s got %v, and is told nothing", shortID(w.pull.ID), w.handed)
		}
		if err := m.checkHanded(w, got); err != nil {
			return nil, err
		}
	}
	m.dismiss("", func(w *worker) bool { return len(w.handed) > 0 })
	for _, w := range m.dismissed {
		got := take(func(e *engine.Effect) bool {
			return e.To == w.pull.From && e.Ticket.ID == w.pull.ID && e.Outcome == engine.Refused
		})
		if got == nil {
			return nil, fmt.Errorf("the worker %s is idle no more, and is not told why", shortID(w.pull.ID))
		}
	}
	for _, t := range m.endings {
		for _, f := range t.followers {
			want := engine.Done
			if t.state != interlock.TaskDone {
				want = engine.Refused
			}
			got := take(func(e *engine.Effect) bool {
				return e.To == f.to && e.Outcome == want && len(e.Tasks) == 1 && e.Tasks[0].ID == t.id &&
					e.Tasks[0].State == t.state
			})
			if got == nil {
				return nil, fmt.Errorf("%v is not told that %v", f.to, t)
			}
		}
		t.followers = nil
	}
	for _, f := range m.unfollowed {
		got := take(func(e *engine.Effect) bool {
			return e.To == f.to && e.Outcome == engine.Refused && e.Code == f.code && len(e.Tasks) == 1 &&
				e.Tasks[0].ID == f.task.id
		})
		if got == nil {
			return nil, fmt.Errorf("%v waits for %v no more, and is not told that by %s", f.to, f.task, f.code)
		}
	}
	for i := range effects {
		if e := &effects[i]; len(e.Handed) > 0 || len(e.Tasks) > 0 {
			return nil, fmt.Errorf("%v was told %s, which does not concern it", e.To, effectText(e))
		}
	}
	m.dismissed, m.endings, m.unfollowed, m.asking = nil, nil, nil, nil
	return effects, nil
}

// checkTaskViews compares what can be looked at.
func (m *model) checkTaskViews(e *engine.Engine, ns interlock.Namespace) error {
	l := engine.TaskList{Namespace: ns, Limit: 1000}
	for !l.Look(e) {
	}
	var list []*task
	for _, t := range m.tasks {
		if t.ns == ns {
			list = append(list, t)
		}
	}
	if len(l.Rows) != len(list) {
		return fmt.Errorf("%d tasks are listed, want %v", len(l.Rows), list)
	}
	slices.SortFunc(list, func(a, b *task) int { return int(a.num) - int(b.num) })
	for i, t := range list {
		if err := m.checkTask(t, l.Rows[i]); err != nil {
			return err
		}
	}
	told := 0
	for _, t := range list {
		barred := m.isBarred(t) && m.ahead(t) == nil
		if got, _ := e.Task(ns, t.id); got.Barred != barred && !(got.Barred && m.mayBeBarred(t) && m.ahead(t) == nil) {
			return fmt.Errorf("%v is shown as barred: %v", t, got.Barred)
		}
		if barred && told < 2 {
			told++
			if err := m.checkHeldBack(e, &engine.HeldBack{Namespace: ns, Agent: t.agent}); err != nil {
				return err
			}
		}
	}
	if err := m.checkApprovals(e, ns); err != nil {
		return err
	}
	for _, q := range m.queues {
		if q.ns != ns {
			continue
		}
		got, ok := e.QueueStatus(ns, q.Name)
		want := interlock.QueueStatus{TaskQueue: q.TaskQueue}
		for _, t := range list {
			if t.spec.Queue != q.Name {
				continue
			}
			switch t.state {
			case interlock.TaskScheduled:
				want.Scheduled++
			case interlock.TaskWaiting:
				want.Waiting++
				want.Oldest = max(want.Oldest, m.now.Sub(t.stood))
			case interlock.TaskRunning:
				want.Running++
			case interlock.TaskAsking:
				want.Asking++
			case interlock.TaskDead:
				want.Dead++
			}
		}
		for _, w := range m.workers {
			if w.pull.Namespace == ns && w.pull.Queue == q.Name {
				want.Idle++
			}
		}
		if got.Groups == nil {
			got.Groups = want.Groups
		}
		if !ok || !reflect.DeepEqual(got, want) {
			return fmt.Errorf("queue %s is shown as %+v, want %+v", q.Name, got, want)
		}
	}
	return nil
}

// checkTask compares a task with how it is shown.
func (m *model) checkTask(t *task, got engine.Task) error {
	want := engine.Task{Reason: t.reason, Approval: m.approval(t), Task: interlock.Task{
		ID: t.id, Queue: t.spec.Queue, Kind: t.spec.Kind, Claims: t.spec.Claims, Payload: t.spec.Payload,
		Purpose: t.spec.Purpose, Group: t.spec.Group,
		Priority: t.spec.Priority, State: t.state, Agent: t.agent, Session: t.session, Flow: t.flow, Principal: t.principal,
		Sender: t.sender, Age: m.now.Sub(t.submitted),
		Attempt: t.attempt, MaxAttempts: m.maxAttempts(t), Result: t.result, DoneBy: t.doneBy,
	}}
	switch {
	case t.state == interlock.TaskScheduled:
		want.Due = t.due.Sub(m.now)
	case t.state == interlock.TaskDone:
		want.Payload = nil
	}
	if t.isSettled() {
		want.Settled = max(1, m.now.Sub(t.settled))
	} else if t.deadline != 0 {
		want.Deadline = max(1, t.deadline.Sub(m.now))
	}
	var fences []interlock.Fence
	for _, a := range got.Attempts {
		fences = append(fences, a.Fence)
	}
	if past := t.past[max(0, len(t.past)-interlock.MaxKeptAttempts):]; !slices.Equal(fences, past) {
		return fmt.Errorf("%v: the attempts %+v, want those with %v", t, got.Attempts, past)
	}
	got.Attempts = nil
	if len(got.Claims) == 0 {
		got.Claims, want.Claims = nil, nil
	}
	if len(got.Payload) == 0 {
		got.Payload, want.Payload = nil, want.Payload[:0:0]
	}
	if len(want.Payload) == 0 {
		want.Payload = nil
	}
	if len(got.Result) == 0 && len(want.Result) == 0 {
		got.Result, want.Result = nil, nil
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("a task is shown as\n%+v, want\n%+v", got, want)
	}
	return nil
}
