package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Tasks as they are submitted, by a command or by the acknowledgement of another.

// submitter is the caller that submits tasks.
type submitter struct {
	agent, flow, principal string
	sess                   *store.Session // nil for one without
	writer                 interlock.Key  // the key that it writes, at work on a message to it; "" for others
}

func (c *Submit) decide(e *Engine) {
	if code, problem := store.CheckTexts(
		store.Text{Name: "agent", Value: c.Agent, Limit: interlock.MaxNameBytes},
		store.Text{Name: "flow", Value: c.Flow, Limit: interlock.MaxNameBytes},
	); code != "" {
		e.refuse(code, problem)
		return
	}
	if problem := checkNamespace(c.Namespace); problem != nil {
		e.refuse(interlock.CodeInvalidNamespace, problem)
		return
	}
	sess, ok := e.caller()
	if !ok {
		return
	}
	by := submitter{agent: c.Agent, flow: c.Flow, principal: c.Actor, sess: sess}
	if sess != nil {
		by.agent, by.flow = sess.Agent, flowOr(c.Flow)
	}
	specs, no := e.prepare([]TaskSpec{c.Task}, by)
	if no != nil {
		e.refuseFor(no)
		return
	}
	if c.Attach {
		if own := sess.OwnAttempt(c.Flow, specs[0].Claims, false); own != nil {
			e.refuseOwnAttempt(own)
			return
		}
		if no := e.PendingWork.NS.TooManyFollows(sess); no != nil {
			e.refuseFor(no)
			return
		}
	}
	t := e.place(c.Task.ID, specs[0], sess)
	e.replyTask(t, c.Attach, c.Flow)
	s := t.Queue.NS
	eff := &e.out.Effects[e.replied]
	eff.Warnings = append(eff.Warnings, s.Warnings(t.Spec.Claims)...)
	eff.Warnings = append(eff.Warnings, s.Strangers(t.Spec.Claims, t.Spec.Group)...)
	eff.Warnings = append(eff.Warnings, t.StrictLimit()...)
}

// prepare checks tasks that are submitted together, and returns their stored form. None is submitted
// if one is refused.
func (e *Engine) prepare(list []TaskSpec, by submitter) (specs []*record.Task, no *store.Refusal) {
	if len(list) == 0 {
		return nil, nil
	}
	if code, problem := e.closedFor(); code != "" {
		return nil, &store.Refusal{Code: code, Message: problem}
	}
	s := e.PendingWork.NS
	bytes, news := 0, map[*store.Queue]int{}
	for i := range list {
		x := &list[i]
		if x.Message {
			addressed := *x // the caller's has the address, and no more
			x = &addressed
		}
		if no := checkTask(x); no != nil {
			return nil, no
		}
		if x.Message {
			if no := x.address(s); no != nil {
				return nil, no
			}
		}
		q := s.Registered(x.Queue)
		if q == nil {
			return nil, store.UnknownQueue(x.Queue)
		}
		if no := q.KeepsFrom(e.head.Principal, x.Message); no != nil {
			return nil, no
		}
		if x.Message { // checkClaims reports the claims of the others
			if no := store.ReservedKey(x.Claims[0].Key, e.head.Principal); no != nil {
				return nil, no
			}
			if no := store.OutsideGroup(e.head.Principal, x.Group); no != nil {
				return nil, no
			}
		}
		if q.Drain {
			return nil, &store.Refusal{
				Code: interlock.CodeQueueDraining, Message: message.New(message.QueueDrains, message.Str(q.Name)),
			}
		}
		if !x.Message { // the writer claims for itself
			if no := e.checkClaims(x.Claims, x.Group, nil); no != nil {
				return nil, no
			}
		}
		if x.Ask != nil {
			if no := s.SpellReads(x.Ask.Reads); no != nil {
				return nil, no
			}
		}
		news[q]++
		if limit := store.Within(interlock.MaxTasks, q.MaxTasks); q.Open()+news[q] > limit {
			return nil, &store.Refusal{
				Code:    interlock.CodeTooManyTasks,
				Message: message.New(message.QueueAtLimit, message.Str(q.Name), message.Num(q.Open()), message.Num(limit)),
			}
		}
		if s.Tasks.Known[x.ID] != nil || slices.ContainsFunc(list[:i], func(y TaskSpec) bool { return y.ID == x.ID }) {
			return nil, idTaken("task")
		}
		spec := e.specOf(x, by)
		bytes += spec.Cost()
		if no := s.NoRoomForTasks(bytes); no != nil {
			return nil, no
		}
		specs = append(specs, spec)
	}
	if no := s.TooManyKeysFor(specs); no != nil {
		return nil, no
	}
	return specs, nil
}

// specOf returns the stored form of a task that was checked.
func (e *Engine) specOf(x *TaskSpec, by submitter) *record.Task {
	spec := &record.Task{
		Claims: x.Claims, Payload: x.Payload, Purpose: x.Purpose, Priority: int32(x.Priority), Submitted: e.Clock,
		Message: x.Message,
	}
	from := record.Address{
		Queue: x.Queue, Kind: x.Kind, Group: x.Group, Agent: by.agent, Flow: by.flow, Principal: by.principal,
	}
	if by.sess != nil {
		from.Session = by.sess.Name
	}
	if x.Message {
		from.Sender = by.senderOf()
	}
	spec.Address = &from
	rare := record.TaskExtras{Trace: x.Trace, Attempts: x.MaxAttempts, Backoff: x.Backoff, MaxBackoff: x.MaxBackoff}
	if x.Delay > 0 {
		rare.Due = e.Clock.Add(x.Delay)
	}
	if x.Deadline > 0 {
		rare.Deadline = e.Clock.Add(x.Deadline)
	}
	if x.Ask != nil {
		rare.Approval = e.approvalOf(x.Ask, by.agent, e.PendingWork.NS.Registered(x.Queue))
	}
	spec.TaskExtras = rare.Kept()
	return spec
}

// place creates a task from its prepared form.
func (e *Engine) place(id [16]byte, spec *record.Task, sess *store.Session) *store.Task {
	*e.draft() = record.Event{
		Kind: record.TaskSubmitted, Namespace: e.head.Namespace, ID: id, Num: e.Num + 1, Op: uint8(interlock.TaskWaiting),
	}
	spec.Describe(e.ev)
	e.Hint.Spec = spec
	switch {
	case spec.Approval != nil:
		e.ev.Op = uint8(interlock.TaskAsking)
	case spec.Due != 0:
		e.ev.Op = uint8(interlock.TaskScheduled)
	}
	if sess != nil {
		e.ev.Session = sess.Num
	}
	if !e.tagged {
		e.tag(e.ev, Done)
	}
	e.emit(e.ev)
	t := e.PendingWork.NS.Tasks.Known[id]
	e.placed(t)
	return t
}

// again follows the task, as long as it is known.
func (c *Submit) again(e *Engine, a *store.StoredAnswer) {
	if t := e.PendingWork.NS.Tasks.Known[a.ID]; t != nil {
		e.replyTask(t, c.Attach, c.Flow)
		return
	}
	e.replyTaskAgain(a)
}
