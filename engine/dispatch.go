package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Which task goes to which worker, and when.
//
// A task that nothing blocks is put on a shelf of its group (lot.go). If there is no worker
// that may hold it, it is dormant from then on. Otherwise it waits until the step has looked at
// every request that its change may have helped; then the queues that have workers dispatch in
// fair order, each until it has no worker or nothing to dispatch, and what is left of it is
// dormant before the next one's turn. So a batch of keys that become free at once is shared out
// fairly, no request passes a task that has a worker, and a task without one keeps no worker
// from another queue.

// taskVisits is the cost, in objects, of checking a task that may have become able to run, or
// may be so no more. It may journal nothing, so only this cost bounds the checks.
const taskVisits = 4

// dispatch hands tasks of one queue to the worker that has waited longest, of those that may
// hold one. A worker with a quota that admits no more leases is refused, and does not block
// others.
func (e *Engine) dispatch() {
	q := e.ToDispatch[0]
	e.ToDispatch = slices.Delete(e.ToDispatch, 0, 1)
	q.NeedsDispatch = false
	if p := e.NextWorker(q); p != nil {
		if no := q.NS.TooManyAttempts(p.Actor); no != nil {
			p.Dismiss()
			eff := e.effect(p.Caller, Refused)
			eff.Ticket.ID, eff.Code, eff.Message = p.ID, no.Code, no.Message
		} else if served := e.dispatchTo(p); len(served) > 0 {
			p.Dismiss()
			eff := e.effect(p.Caller, Granted)
			eff.Ticket.ID, eff.Handed = p.ID, e.handOver(served)
		}
	}
	e.NeedsDispatch(q)
	e.Rest(q)
}

// dispatchTo returns a worker what there is for it, as much as it takes, its quota admits and
// the step may, and lists the leases.
func (e *Engine) dispatchTo(p *store.Pull) (served []*store.Request) {
	q := p.Queue
	for len(served) < len(p.Leases) && q.MayRun() && !e.full() && q.NS.TooManyAttempts(p.Actor) == nil {
		s := e.Next(q, p.By)
		if s == nil {
			break
		}
		e.Visited += taskVisits
		t := s.Able[0]
		if q.Unshelve(t); s.Lot.IsStale(q.NS) {
			q.Shelve(t)
			continue
		}
		if e.lookAgain(t, -1) {
			continue // it was dormant, and another request passed it
		}
		g := t.Group
		e.hand(t, p, p.Leases[len(served)])
		q.Served(g)
		served = append(served, t.Request)
	}
	return served
}

// hand makes the request of a task a lease of a worker.
func (e *Engine) hand(t *store.Task, p *store.Pull, id [16]byte) {
	q, r := t.Queue, t.Request
	c := Acquire{LeaseRequest: interlock.LeaseRequest{Claims: r.Claims(), Terms: interlock.Terms{
		TTL: cmp.Or(p.TTL, q.TTL), Grace: q.Grace, MaxHold: q.MaxHold, Stall: q.Stall,
	}}}
	c.bound(q.NS, p.Sess)
	if t.Spec.Deadline != 0 { // by then it is to be done
		c.MaxHold = tighter(c.MaxHold, max(1, t.Spec.Deadline.Sub(e.Clock)))
	}
	ev := e.event(record.TaskDispatched, r)
	ev.ID, ev.BaseID, ev.Fence, ev.Generation = id, t.ID, e.Fence+1, uint64(t.Attempt+1)
	ev.Terms, ev.Waited = withDefaults(c.Terms, p.Sess), e.Clock.Sub(t.Since)
	ev.MaxWait = 0 // it stands in no line
	ev.Agent, ev.Actor, ev.Trace = p.Agent, p.Actor, r.Trace
	if p.Sess != nil {
		ev.Session, ev.Agent, ev.Flow = p.Sess.Num, p.Sess.Agent, t.ID.String()
	}
	ev.Changed = t.IsUnused()
	e.emit(ev)
	e.DisarmTask(t)
	e.Arm(r)
	e.FireRates(r)
	r.NoteGrant(true)
	e.HeldMore(r)
	for i := range r.Needs() { // a task behind it may be the first of its queue now
		for c := range r.Needs()[i].Facing {
			if c.Queue == q && c.Aside {
				e.ReadyClass(c)
			}
		}
	}
}

// handOver describes to a worker those of its attempts that still run. Documents without room
// for their bodies come without them.
func (e *Engine) handOver(attempts []*store.Request) (list []Assignment) {
	room := interlock.MaxReadBytes
	for i, r := range attempts {
		if r.IsOver() || r.Task.Request != r {
			continue
		}
		if list == nil {
			list = make([]Assignment, 0, len(attempts)-i)
		}
		t, s := r.Task, r.NS
		h := Assignment{Task: t.Show(), Assignment: interlock.Assignment{AsOf: s.Documents.Version}}
		r.DescribeHanded(&h.Lease)
		t.Revalidate(&h.Task)
		for _, c := range t.Spec.Claims {
			doc := s.Documents.Show(c.Key, true, e.Clock)
			if len(doc.Body) > room {
				doc.Body = nil
			}
			room -= len(doc.Body)
			h.Documents = append(h.Documents, doc)
		}
		list = append(list, h)
	}
	return list
}

// decide asks for tasks of a queue.
func (c *Pull) decide(e *Engine) {
	if code, problem := checkPull(c); code != "" {
		e.refuse(code, problem)
		return
	}
	sess, ok := e.caller()
	if !ok || c.repeats(e, sess) {
		return
	}
	if code, problem := e.closedFor(); code != "" {
		e.refuse(code, problem)
		return
	}
	q := e.PendingWork.NS.Registered(c.Queue)
	if q == nil {
		e.refuseQueue(c.Queue)
		return
	}
	if no := cmp.Or(q.NotPuller(c.Principal), q.NS.TooManyAttempts(c.Actor)); no != nil {
		e.refuseFor(no)
		return
	}
	old := q.NS.Tasks.Pulls[c.ID]
	if old != nil && !c.Attach && old.Wire != c.Link { // of another call, which continues to listen
		e.reply(Queued).Ticket = interlock.Ticket{ID: c.ID}
		return
	}
	p := &store.Pull{
		ID: c.ID, Queue: q, Sess: sess, Agent: c.Agent, Actor: c.Actor, By: c.Principal, Leases: c.Leases[:c.Max],
		TTL: c.TTL, Caller: c.From, Wire: c.Link,
	}
	p.Link.Value, p.Mine.Value = p, p
	if old != nil {
		old.Dismiss()
	}
	if served := e.dispatchTo(p); len(served) > 0 {
		e.settle() // a cycle that this closed may have cost one already
		eff := e.reply(Granted)
		eff.Ticket.ID, eff.Handed = p.ID, e.handOver(served)
		return
	}
	if c.Attach {
		if no := q.NS.TooManyPulls(sess); no != nil {
			e.refuseFor(no)
			return
		}
		e.AddIdleWorker(p)
	}
	e.reply(Queued).Ticket = interlock.Ticket{ID: p.ID}
}

// repeats reports whether the pull got tasks before, and answers it with those of its attempts that
// still run, which may be none.
func (c *Pull) repeats(e *Engine, sess *store.Session) bool {
	s := e.PendingWork.NS
	if s == nil {
		return false
	}
	var attempts []*store.Request
	for _, id := range c.Leases[:c.Max] {
		r := s.Request(id)
		if r == nil {
			continue
		}
		if r.AttemptAt().IsZero() || r.Session() != sess && !r.IsOver() {
			e.refuse(interlock.CodeInvalidRequest, message.New(message.PullLeaseTaken))
			return true
		}
		attempts = append(attempts, r)
	}
	if len(attempts) == 0 {
		return false
	}
	eff := e.reply(Granted)
	eff.Ticket.ID, eff.Handed = c.ID, e.handOver(attempts)
	return true
}

// dismissPulls dismisses the idle workers of a queue that why refuses, and reports it to them:
// at once to as many as the step may, to the others in later steps.
func (e *Engine) dismissPulls(q *store.Queue, why func(*interlock.Principal) *store.Refusal) {
	e.Visited += len(q.WorkerGroups)
	q.WorkerGroups = slices.DeleteFunc(q.WorkerGroups, func(c *store.WorkerGroup) bool {
		no := why(c.By)
		if no != nil {
			e.Dismissed.Push(store.Dismissal{Crew: c, No: no})
			q.Parted = true
		}
		return no != nil
	})
	e.dismissMore()
}

// dismissMore continues the dismissals.
func (e *Engine) dismissMore() {
	for e.Dismissed.Len() > 0 {
		d := e.Dismissed.At(0)
		for d.Crew.Idle.Len() > 0 {
			if e.full() {
				return
			}
			e.Visited++
			p := d.Crew.Idle.Front().Value
			p.Dismiss()
			eff := e.effect(p.Caller, Refused)
			eff.Ticket.ID, eff.Code, eff.Message = p.ID, d.No.Code, d.No.Message
		}
		e.Dismissed.Pop()
	}
}

// endPulls ends those of a session that is over, and reports whether none is left.
func (e *Engine) endPulls(sess *store.Session) (done bool) {
	for sess.Pulls.Len() > 0 {
		if e.full() {
			return false
		}
		e.Visited++
		p := sess.Pulls.Front().Value
		p.Dismiss()
		eff := e.effect(p.Caller, Refused)
		eff.Ticket.ID = p.ID
		eff.Code, eff.Message = interlock.CodeSessionEnded, message.New(message.WorkerSessionOver)
	}
	return true
}
