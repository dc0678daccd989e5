package engine

import (
	"cmp"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Human approval: a task waits for a decision, before it first runs or because
// its worker asks. It holds nothing meanwhile, and stands in no line; when it is
// approved it stands where it stood before.
//
//	            ┌──── approved, and due ────► waiting
//	asking ─────┼──── approved, not due ────► scheduled
//	  ▲         └──── denied ───────────────► dead
//	  └──────────────── replay ────────────────┘
//
// A queue may name its approvers and require several of them, when the question is asked or later.
// Approvals before the last one leave the task as it is; one denial decides. A question that is not
// answered in time gets its asker's default answer, or no if the queue controls approvals. An
// unapproved task never runs: any worker that takes it up must ask again.
//
// An approval is for one execution. The attempt that begins under it uses it; later ones see which
// one that was, and a replay of the task asks again, unless the queue lets approvals stand.
//
// An approval is a control: a principal that submitted the task, asked about it, worked
// at it when it was asked about, or took it up again cannot answer. What a thing of a principal
// does, such as a link that its webhook sends, is its own act: so neither can that thing, and the
// two together are one of several approvals. Without credentials there are no principals to
// compare, and an approval is a courtesy.

// approvalOf returns the kept part of a question that was checked, about a task of a queue.
func (e *Engine) approvalOf(q *interlock.Question, agent string, of *store.Queue) *record.Approval {
	return &record.Approval{
		Text: q.Text, Agent: agent, Asked: e.Clock, Limit: q.Limit, OnLimit: q.OnLimit, Reads: q.Reads,
		Least: of.LeastApprovals(),
	}
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
	r := t.Request
	if r.IsPutAside() {
		e.refuseParked(r)
		return
	}
	s := t.Queue.NS
	if no := s.SpellReads(c.Question.Reads); no != nil {
		e.refuseFor(no)
		return
	}
	a := e.approvalOf(&c.Question, t.Going.Agent, t.Queue)
	a.AddAsker(c.Actor)
	a.AddAsker(r.Owner())
	if no := s.NoRoomForTasks(a.Size() - t.Spec.Approval.Size()); no != nil {
		e.refuseFor(no)
		return
	}
	ev := e.standing(t, interlock.TaskAsking)
	ev.Kind, ev.Actor, ev.Generation = record.ApprovalRequested, c.Actor, uint64(t.Attempt-1)
	ev.Blob = record.AppendApproval(nil, a, e.Clock)
	e.tag(ev, Done)
	e.emit(ev)
	e.emit(e.endCause(r, record.ByQuestion))
	e.placed(t)
	eff := e.reply(Done)
	eff.Tasks, eff.Warnings = []Task{t.Show()}, t.StrictLimit()
}

// decide takes in a person's word.
func (c *Answer) decide(e *Engine) {
	by := cmp.Or(c.By, c.Actor)
	code, problem := store.CheckTexts(
		store.Text{Name: "name", Value: by, Limit: interlock.MaxNameBytes},
		store.Text{Name: "reason", Value: c.Reason, Limit: interlock.MaxReasonBytes},
	)
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
		c.answerLease(e, by)
		return
	}
	t := e.findTask(c.Task)
	if t == nil {
		return
	}
	if a := t.Spec.Approval; t.State != interlock.TaskAsking {
		if a != nil && a.Verdict == c.Verdict && a.By == by && a.Principal == c.Actor {
			e.reply(Done).Tasks = []Task{t.Show()}
			return
		}
		words := message.New(message.TaskAsksNobody, message.Str(t.State.String()))
		if a != nil && a.Verdict != 0 {
			words = message.New(
				message.TaskAnswered, message.Str(a.Verdict.String()), message.Str(interlock.Answerer(a.Principal, a.By)),
				message.Str(t.State.String()),
			)
		}
		e.refuse(interlock.CodeNotAsking, words).Tasks = []Task{t.Show()}
		return
	}
	if c.Asked != 0 && c.Asked != t.Spec.Approval.Asked {
		e.refuse(interlock.CodeNotAsking, message.New(message.AnotherQuestion)).Tasks = []Task{t.Show()}
		return
	}
	principals, no := t.Queue.NS.ActsFor(c.Actor, c.Principal)
	if no == nil {
		no = t.NotAnsweredBy(principals)
	}
	if no == nil {
		no = t.Queue.NotApprover(c.Principal)
	}
	if no != nil {
		e.refuse(no.Code, no.Message).Tasks = []Task{t.Show()}
		return
	}
	a := t.Spec.Approval
	if c.Verdict == interlock.Approved && a.HasGiven(c.Actor, by) {
		e.reply(Done).Tasks = []Task{t.Show()}
		return
	}
	if twice := a.HasActed(principals); c.Verdict == interlock.Approved && twice != "" {
		e.refuse(
			interlock.CodeForbidden, message.New(message.ApprovedAlready, message.Str(twice), message.Str(c.Actor)),
		).Tasks = []Task{t.Show()}
		return
	}
	ev := e.verdict(t, c.Verdict, principals, by, message.Plain(c.Reason))
	if c.Verdict == interlock.Approved && len(a.Given)+1 < t.LeastApprovals() {
		ev.Op, ev.Due = uint8(interlock.TaskAsking), 0
	}
	if sess := e.scope(); sess != nil {
		ev.Session = sess.Num
	}
	e.tag(ev, Done)
	e.emit(ev)
	e.placed(t)
	e.reply(Done).Tasks = []Task{t.Show()}
}

// answerItself answers a task's timed-out question with its default.
func (e *Engine) answerItself(t *store.Task) {
	a := t.Spec.Approval
	why := message.New(message.AnsweredByNone, message.Dur(a.Limit))
	if n := len(a.Given); n > 0 {
		why = message.New(
			message.AnsweredByFew, message.Num(n), message.Num(t.LeastApprovals()), message.Dur(a.Limit),
		)
	}
	e.emit(e.verdict(t, t.OnLimit(), []string{""}, interlock.ByPolicy, why))
}

// verdict drafts the event for the answer to a task's question: by the first of some principals, which all
// answer by it, and that claims a name; or neither. why is nil for none.
func (e *Engine) verdict(
	t *store.Task, v interlock.Verdict, principals []string, by string, why *message.Text,
) *record.Event {
	principal := principals[0]
	ev := e.standing(t, interlock.TaskWaiting)
	ev.Kind, ev.Actor, ev.Agent = record.ApprovalDecided, principal, by
	ev.SetVerdict(principal, principals[1:], t.Spec.Approval.Text, why)
	switch left := t.Spec.Due.Sub(e.Clock); {
	case v == interlock.Denied:
		ev.Op = uint8(interlock.TaskDead)
		ev.SetWhy(denied(interlock.Answerer(principal, by), why))
	case left > 0:
		ev.Op, ev.Due = uint8(interlock.TaskScheduled), left
	}
	return ev
}

// denied returns the reason of a task that is dead because its question was denied by the name.
func denied(name string, why *message.Text) *message.Text {
	if why == nil {
		return message.New(message.TaskDenied, message.Str(name))
	}
	return message.New(message.TaskDeniedSaying, message.Str(name), message.Sub(why))
}

// Approvals lists the tasks that wait for a person, in the order in which they asked,
// with no more text than an answer can take.
type Approvals struct {
	Namespace interlock.Namespace
	After     store.AskedAt // Next of the page before; zero: from the beginning
	Limit     int           // 0: 100, and at most 1000

	Rows []Task
	More bool          // there are more than Limit
	Next store.AskedAt // the listing continues after it, whatever becomes of these tasks

	seen  *store.Task // the last that was looked at
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
	next := s.Tasks.Asking.Front()
	if t := l.seen; t != nil && t.State == interlock.TaskAsking {
		next = t.Link.Next()
	}
	for budget := glances; budget > 0; budget-- {
		if next == nil {
			return true
		}
		t := next.Value
		next, l.seen = next.Next(), t
		if t.AskedAt().Compare(l.Next) <= 0 {
			continue
		}
		row := t.Show()
		t.Revalidate(&row)
		if l.bytes += t.Cost() + bodiesOf(row.Approval.Stale); len(l.Rows) == limit ||
			len(l.Rows) > 0 && l.bytes > interlock.MaxReadBytes {
			l.More = true
			return true
		}
		l.Rows = append(l.Rows, row)
		l.Next = t.AskedAt()
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

func (c *AskHuman) again(e *Engine, a *store.StoredAnswer) { e.replyTaskAgain(a) }

// again shows the parked lease or the task that was decided.
func (c *Answer) again(e *Engine, a *store.StoredAnswer) {
	if c.Fence == 0 {
		e.replyTaskAgain(a)
		return
	}
	eff := e.reply(Done)
	if r := e.parkedWith(c.Fence); r != nil {
		eff.Question = questionOf(r)
	}
}
