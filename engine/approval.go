package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Human approval: a task waits for a person's word, before it first runs or because
// its worker asks. It holds nothing meanwhile, and stands in no line; when it is
// approved it stands where it stood before.
//
//	            ┌──── approved, and due ────► waiting
//	asking ─────┼──── approved, not due ────► scheduled
//	  ▲         └──── denied ───────────────► dead
//	  └──────────────── replay ────────────────┘
//
// A queue may name its approvers and require several of them. Approvals before the last one
// leave the task as it is; one denial decides. A question that is not answered in time gets its
// asker's default answer, or no if the queue controls approvals. An unapproved task never runs:
// any worker that takes it up must ask again.
//
// An approval is a control: a principal that submitted the task, asked about it, worked
// at it when it was asked about, or took it up again cannot answer. Without credentials
// there are no principals to compare, and an approval is a courtesy.

// pauseQuestions extends the open questions by the period before a term in which no answer was
// possible: since the last event, as far as the journal knows.
func (e *State) pauseQuestions(now Time, idle time.Duration) {
	if idle <= 0 {
		return
	}
	for _, s := range e.sorted() {
		s.pauseParkings(now, idle)
		for t := range s.tasks.asking.All {
			if a := t.spec.Approval; a.Limit > 0 {
				a.Paused = min(a.Paused+idle, now.Sub(a.Asked))
			}
		}
	}
}

// isControlled reports whether the queue restricts the approvers of its tasks, or requires a
// number of them. A timeout then never approves.
func (q *queue) isControlled() bool { return len(q.Approvers) > 0 || q.MinApprovals > 0 }

// onLimit returns how the question about the task answers itself.
func (t *task) onLimit() interlock.Verdict {
	if t.queue.isControlled() {
		return interlock.Denied
	}
	return t.spec.Approval.OnLimit
}

// strictLimit warns if the question about the task denies when its time is up, although its
// asker wants it to approve then.
func (t *task) strictLimit() []*message.Text {
	a := t.spec.Approval
	if a == nil || a.Limit == 0 || a.OnLimit == t.onLimit() {
		return nil
	}
	return []*message.Text{message.New(message.LimitDenies, message.Str(t.queue.Name))}
}

// notApprover returns why a caller cannot answer questions about tasks of the queue, nil if
// it can.
func (q *queue) notApprover(by *interlock.Principal) *refusal {
	if by.Listed(q.Approvers) {
		return nil
	}
	if by == nil {
		return &refusal{code: interlock.CodeForbidden, message: message.New(message.ApproversWithoutCredentials, message.Str(q.Name))}
	}
	return &refusal{code: interlock.CodeForbidden, message: message.New(message.NotAnApprover, message.Str(by.Name), message.Str(q.Name), quoted(q.Approvers))}
}

// notAnsweredBy returns why a principal cannot answer the question about the task, nil
// if it can. Without a name it is a caller of a server that asks for no credentials.
func (t *task) notAnsweredBy(principal string) *refusal {
	var part *message.Text
	switch {
	case principal == "":
		return nil
	case t.spec.Principal == principal:
		part = message.New(message.SubmittedTask)
	case slices.Contains(t.spec.Approval.Askers, principal):
		part = message.New(message.AskedOrWorked)
	default:
		return nil
	}
	return &refusal{code: interlock.CodeForbidden, message: message.New(message.OwnWork, message.Str(principal), message.Sub(part))}
}

// isUnapproved reports whether the task has a question that was not answered with yes.
func (t *task) isUnapproved() bool {
	a := t.spec.Approval
	return a != nil && a.Verdict != interlock.Approved
}

// askedAt returns the place of a task among those that ask.
func (t *task) askedAt() AskedAt { return AskedAt{t.spec.Approval.Asked, t.num} }

// askedBefore orders tasks by when they asked.
func (t *task) askedBefore(o *task) bool { return t.askedAt().compare(o.askedAt()) < 0 }

// approvalOf returns the kept part of a question that was checked.
func (e *Engine) approvalOf(q *interlock.Question, agent string) *record.Approval {
	return &record.Approval{Text: q.Text, Agent: agent, Asked: e.now, Limit: q.Limit, OnLimit: q.OnLimit, Reads: q.Reads}
}

// decide takes in that a worker asks a person about its task.
func (c *AskHuman) decide(e *Engine) {
	if no := checkQuestion(&c.Question); no != nil {
		e.refuseFor(no)
		return
	}
	t := e.attempt(c.Lease)
	if t == nil {
		return
	}
	r := t.request
	if r.isPutAside() {
		e.refuseParked(r)
		return
	}
	s := t.queue.ns
	if no := s.spellReads(c.Question.Reads); no != nil {
		e.refuseFor(no)
		return
	}
	a := e.approvalOf(&c.Question, t.going.agent)
	a.AddAsker(c.Actor)
	a.AddAsker(r.owner())
	if no := s.noRoomForTasks(a.Size() - t.spec.Approval.Size()); no != nil {
		e.refuseFor(no)
		return
	}
	ev := e.standing(t, interlock.TaskAsking)
	ev.Kind, ev.Actor, ev.Generation = record.ApprovalRequested, c.Actor, uint64(t.attempt-1)
	ev.Blob = record.AppendApproval(nil, a, e.now)
	e.tag(ev, Done)
	e.emit(ev)
	e.emit(e.endCause(r, record.ByQuestion))
	e.placed(t)
	eff := e.reply(Done)
	eff.Tasks, eff.Warnings = []interlock.Task{e.showTask(t)}, t.strictLimit()
}

// decide takes in a person's word.
func (c *Answer) decide(e *Engine) {
	by := cmp.Or(c.By, c.Actor)
	code, problem := checkTexts(text{"name", by, interlock.MaxNameBytes}, text{"reason", c.Reason, interlock.MaxReasonBytes})
	switch {
	case code != "":
	case c.Verdict != interlock.Approved && c.Verdict != interlock.Denied:
		code, problem = interlock.CodeInvalidRequest, message.New(message.UnknownVerdict)
	case by == "":
		code, problem = interlock.CodeInvalidRequest, message.New(message.AnswererMissing)
	case by == interlock.ByPolicy:
		code, problem = interlock.CodeInvalidRequest, message.New(message.AnswererPolicy, message.Str(by))
	}
	if code != "" {
		e.refuse(code, problem)
		return
	}
	if c.Fence != 0 {
		e.answerParked(c, by)
		return
	}
	t := e.findTask(c.Task)
	if t == nil {
		return
	}
	if a := t.spec.Approval; t.state != interlock.TaskAsking {
		if a != nil && a.Verdict == c.Verdict && a.By == by && a.Principal == c.Actor {
			e.reply(Done).Tasks = []interlock.Task{e.showTask(t)}
			return
		}
		words := message.New(message.TaskAsksNobody, message.Str(t.state.String()))
		if a != nil && a.Verdict != 0 {
			words = message.New(message.TaskAnswered, message.Str(a.Verdict.String()), message.Str(interlock.Answerer(a.Principal, a.By)), message.Str(t.state.String()))
		}
		e.refuse(interlock.CodeNotAsking, words).Tasks = []interlock.Task{e.showTask(t)}
		return
	}
	no := t.notAnsweredBy(c.Actor)
	if no == nil {
		no = t.queue.notApprover(c.Principal)
	}
	if no != nil {
		e.refuse(no.code, no.message).Tasks = []interlock.Task{e.showTask(t)}
		return
	}
	a := t.spec.Approval
	if c.Verdict == interlock.Approved && a.HasGiven(c.Actor, by) {
		e.reply(Done).Tasks = []interlock.Task{e.showTask(t)}
		return
	}
	ev := e.verdict(t, c.Verdict, c.Actor, by, c.Reason)
	if c.Verdict == interlock.Approved && len(a.Given)+1 < t.queue.MinApprovals {
		ev.Op, ev.Due = uint8(interlock.TaskAsking), 0
	}
	if sess := e.scope(); sess != nil {
		ev.Session = sess.num
	}
	e.tag(ev, Done)
	e.emit(ev)
	e.placed(t)
	e.reply(Done).Tasks = []interlock.Task{e.showTask(t)}
}

// answerItself answers a task's timed-out question with its default.
func (e *Engine) answerItself(t *task) {
	a := t.spec.Approval
	e.emit(e.verdict(t, t.onLimit(), "", interlock.ByPolicy, unanswered(len(a.Given), t.queue.MinApprovals, a.Limit)))
}

// verdict drafts the event for the answer to a task's question: by a principal that
// claims a name, or neither.
func (e *Engine) verdict(t *task, v interlock.Verdict, principal, by, words string) *record.Event {
	ev := e.standing(t, interlock.TaskWaiting)
	ev.Kind, ev.Actor, ev.Agent, ev.Note, ev.Blob = record.ApprovalDecided, principal, by, words, record.AppendPrincipal(nil, principal)
	switch left := t.spec.Due.Sub(e.now); {
	case v == interlock.Denied:
		ev.Op, ev.Outcome = uint8(interlock.TaskDead), deniedBy(interlock.Answerer(principal, by), words)
	case left > 0:
		ev.Op, ev.Due = uint8(interlock.TaskScheduled), left
	}
	return ev
}

// evolveAsks folds that the worker of a task asks a person.
func (e *State) evolveAsks(ev *record.Event) error {
	t := e.ns(ev.Namespace).tasks.known[ev.ID]
	if t == nil || t.state != interlock.TaskRunning || interlock.TaskState(ev.Op) != interlock.TaskAsking {
		return errUnknown
	}
	a, err := record.DecodeApproval(ev.Blob, ev.At)
	if err != nil {
		return err
	}
	a.Agent = ev.Agent
	t.remember(func() { t.spec.Extend(func(x *record.TaskExtras) { x.Approval = a }) })
	t.attempt = int32(ev.Generation)
	return e.stands(t, ev)
}

// evolveAnswered folds that a task's question is answered.
func (e *State) evolveAnswered(ev *record.Event) error {
	t := e.ns(ev.Namespace).tasks.known[ev.ID]
	if t == nil || t.state != interlock.TaskAsking {
		return errUnknown
	}
	v := interlock.Approved
	if interlock.TaskState(ev.Op) == interlock.TaskDead {
		v = interlock.Denied
	}
	principal, err := record.DecodePrincipal(ev.Blob)
	if err != nil {
		return err
	}
	if interlock.TaskState(ev.Op) == interlock.TaskAsking { // one of several approvals
		t.remember(func() {
			a := t.spec.Approval
			a.Given = append(slices.Clip(a.Given), interlock.Endorsement{Principal: principal, By: ev.Agent, Reason: ev.Note})
		})
		return nil
	}
	t.remember(func() {
		a := t.spec.Approval
		a.Verdict, a.By, a.Principal, a.Reason = v, ev.Agent, principal, ev.Note
	})
	t.attempt = int32(ev.Generation)
	return e.stands(t, ev)
}

// showApproval describes the question about a task, nil for none.
func (e *Engine) showApproval(t *task) *interlock.Approval {
	a := t.spec.Approval
	if a == nil {
		return nil
	}
	v := &interlock.Approval{
		Question: a.Text, Agent: a.Agent, Asked: e.now.Sub(a.Asked), OnLimit: t.onLimit(), Verdict: a.Verdict, By: a.By,
		Principal: a.Principal, Reason: a.Reason, Approvals: a.Given,
	}
	if n := t.queue.MinApprovals; n > 1 && t.state == interlock.TaskAsking {
		v.Needed = n
	}
	if t.state == interlock.TaskAsking && a.Limit > 0 {
		v.Left = max(1, a.Until().Sub(e.now))
	}
	return v
}

// revalidate adds the changes since its asker read to the description of a task, as long as it
// matters.
func (e *Engine) revalidate(t *task, v *interlock.Task) {
	if a := t.spec.Approval; a != nil && !isSettled(t.state) {
		v.Approval.Stale, v.Approval.StaleMore = e.staleIn(&Commit{CommitRequest: interlock.CommitRequest{
			Reads: a.Reads,
		}}, &t.queue.ns.docs)
	}
}

// AskedAt is a place among the tasks that ask a person, in the order in which they asked.
type AskedAt struct {
	Time Time
	Num  uint64 // of the task; the earlier submitted come first
}

func (a AskedAt) compare(b AskedAt) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Num, b.Num))
}

// Approvals lists the tasks that wait for a person, in the order in which they asked,
// with no more text than an answer can take.
type Approvals struct {
	Namespace interlock.Namespace
	After     AskedAt // Next of the page before; zero: from the beginning
	Limit     int     // 0: 100, and at most 1000

	Rows []interlock.Task
	More bool    // there are more than Limit
	Next AskedAt // the listing continues after it, whatever becomes of these tasks

	seen  *task // the last that was looked at
	bytes int
}

// A row of Approvals weighs as much as this many glances: it may have a number of
// documents.
const approvalGlances = 16

func (l *Approvals) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	if l.seen == nil {
		l.Next = l.After
	}
	limit := rowsOf(l.Limit)
	next := s.tasks.asking.Front()
	if t := l.seen; t != nil && t.state == interlock.TaskAsking {
		next = t.link.Next()
	}
	for budget := glances; budget > 0; budget-- {
		if next == nil {
			return true
		}
		t := next.Value
		next, l.seen = next.Next(), t
		if t.askedAt().compare(l.Next) <= 0 {
			continue
		}
		row := e.showTask(t)
		e.revalidate(t, &row)
		if l.bytes += t.cost() + bodiesOf(row.Approval.Stale); len(l.Rows) == limit || len(l.Rows) > 0 && l.bytes > interlock.MaxReadBytes {
			l.More = true
			return true
		}
		l.Rows = append(l.Rows, row)
		l.Next = t.askedAt()
		budget -= approvalGlances
	}
	return false
}

// bodiesOf returns the number of bytes of the changed documents.
func bodiesOf(list []interlock.Stale) (n int) {
	for i := range list {
		n += len(list[i].Then.Body) + len(list[i].Now.Body)
	}
	return n
}

func (c *AskHuman) again(e *Engine, a *storedAnswer) { e.replyTaskAgain(a) }

// again shows the parked lease or the task that was decided.
func (c *Answer) again(e *Engine, a *storedAnswer) {
	if c.Fence == 0 {
		e.replyTaskAgain(a)
		return
	}
	eff := e.reply(Done)
	if r := e.parkedWith(c.Fence); r != nil {
		eff.Question = e.question(r)
	}
}
