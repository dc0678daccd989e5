package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
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

// pull is a worker that asks for tasks.
type pull struct {
	id     [16]byte
	queue  *queue
	sess   *session // nil for one without
	agent  string   // of one without a session
	actor  string
	by     *interlock.Principal // nil without credentials
	leases [][16]byte           // ids to be
	ttl    time.Duration
	caller Caller
	wire   uint64 // over which its caller listens: Head.Link

	order uint64 // among the idle ones of its queue
	crew  *workerGroup
	link  collection.Element[*pull] // in crew.idle
	mine  collection.Element[*pull] // in session.pulls
	seat  int32                     // in tasks.idle
}

func (p *pull) SetIndex() *int32 { return &p.seat }

// taskVisits is the cost, in objects, of checking a task that may have become able to run, or
// may be so no more. It may journal nothing, so only this cost bounds the checks.
const taskVisits = 4

// couldRun notes that nothing blocks a task any more.
func (e *Engine) couldRun(t *task) {
	if t.eligibility == runnable || t.eligibility == idle {
		return
	}
	q := t.queue
	q.shelve(t)
	if e.needsDispatch(q); q.hungry && t.group.mayRun() && q.hasWorker(t) {
		e.setEligibility(t, runnable)
		q.fresh = append(q.fresh, t)
	} else {
		e.setEligibility(t, idle)
	}
}

// dispatch hands tasks of one queue to the worker that has waited longest, of those that may
// hold one. A worker with a quota that admits no more leases is refused, and does not block
// others.
func (e *Engine) dispatch() {
	q := e.hungry[0]
	e.hungry = slices.Delete(e.hungry, 0, 1)
	q.hungry = false
	if p := e.nextWorker(q); p != nil {
		if no := q.ns.tooManyAttempts(p.actor); no != nil {
			p.dismiss()
			eff := e.effect(p.caller, Refused)
			eff.Ticket.ID, eff.Code, eff.Message = p.id, no.code, no.message
		} else if served := e.dispatchTo(p); len(served) > 0 {
			p.dismiss()
			eff := e.effect(p.caller, Granted)
			eff.Ticket.ID, eff.Handed = p.id, e.handOver(served)
		}
	}
	e.needsDispatch(q)
	e.rest(q)
}

// dispatchTo returns a worker what there is for it, as much as it takes, its quota admits and
// the step may, and lists the leases.
func (e *Engine) dispatchTo(p *pull) (served []*request) {
	q := p.queue
	for len(served) < len(p.leases) && q.mayRun() && !e.full() && q.ns.tooManyAttempts(p.actor) == nil {
		s := e.next(q, p.by)
		if s == nil {
			break
		}
		e.objects += taskVisits
		t := s.able[0]
		if q.unshelve(t); s.lot.isStale(q.ns) {
			q.shelve(t)
			continue
		}
		if e.lookAgain(t, -1) {
			continue // it was dormant, and another request passed it
		}
		g := t.group
		e.hand(t, p, p.leases[len(served)])
		q.served(g)
		served = append(served, t.request)
	}
	return served
}

// hand makes the request of a task a lease of a worker.
func (e *Engine) hand(t *task, p *pull, id [16]byte) {
	q, r := t.queue, t.request
	c := Acquire{LeaseRequest: interlock.LeaseRequest{Claims: r.claims(), Terms: interlock.Terms{
		TTL: cmp.Or(p.ttl, q.TTL), Grace: q.Grace, MaxHold: q.MaxHold, Stall: q.Stall,
	}}}
	c.bound(q.ns, p.sess == nil)
	if t.spec.Deadline != 0 { // by then it is to be done
		c.MaxHold = tighter(c.MaxHold, max(1, t.spec.Deadline.Sub(e.now)))
	}
	ev := e.event(record.TaskDispatched, r)
	ev.ID, ev.BaseID, ev.Fence, ev.Generation = id, t.id, e.fence+1, uint64(t.attempt+1)
	ev.Terms, ev.Waited = withDefaults(c.Terms, p.sess), e.now.Sub(t.since)
	ev.MaxWait = 0 // it stands in no line
	ev.Agent, ev.Actor = p.agent, p.actor
	if p.sess != nil {
		ev.Session, ev.Agent, ev.Flow = p.sess.num, p.sess.agent, t.id.String()
	}
	e.emit(ev)
	e.disarmTask(t)
	e.arm(r)
	e.fireRates(r)
	r.noteGrant(true)
	e.heldMore(r)
	for i := range r.needs() { // a task behind it may be the first of its queue now
		for c := range r.needs()[i].facing {
			if c.queue == q && c.aside {
				e.readyClass(c)
			}
		}
	}
}

// handOver describes to a worker those of its attempts that still run. Documents without room
// for their bodies come without them.
func (e *Engine) handOver(attempts []*request) (list []Assignment) {
	room := interlock.MaxReadBytes
	for i, r := range attempts {
		if r.isOver() || r.task.request != r {
			continue
		}
		if list == nil {
			list = make([]Assignment, 0, len(attempts)-i)
		}
		t, s := r.task, r.ns
		h := Assignment{Task: e.showTask(t), AsOf: s.docs.version}
		e.describeHanded(r, &h.Lease)
		e.revalidate(t, &h.Task)
		for _, c := range t.spec.Claims {
			doc := e.present(&s.docs, c.Key, true)
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
	if !ok || e.pulledBefore(c, sess) {
		return
	}
	if code, problem := e.closedFor(); code != "" {
		e.refuse(code, problem)
		return
	}
	q := e.pendingWork.ns.registered(c.Queue)
	if q == nil {
		e.refuseQueue(c.Queue)
		return
	}
	if no := cmp.Or(q.notPuller(c.Principal), q.ns.tooManyAttempts(c.Actor)); no != nil {
		e.refuseFor(no)
		return
	}
	old := q.ns.tasks.pulls[c.ID]
	if old != nil && !c.Attach && old.wire != c.Link { // of another call, which continues to listen
		e.reply(Queued).Ticket = interlock.Ticket{ID: c.ID}
		return
	}
	p := &pull{
		id: c.ID, queue: q, sess: sess, agent: c.Agent, actor: c.Actor, by: c.Principal, leases: c.Leases[:c.Max], ttl: c.TTL, caller: c.From, wire: c.Link,
	}
	p.link.Value, p.mine.Value = p, p
	if old != nil {
		old.dismiss()
	}
	if served := e.dispatchTo(p); len(served) > 0 {
		e.settle() // a cycle that this closed may have cost one already
		eff := e.reply(Granted)
		eff.Ticket.ID, eff.Handed = p.id, e.handOver(served)
		return
	}
	if c.Attach {
		if no := q.ns.tooManyPulls(sess); no != nil {
			e.refuseFor(no)
			return
		}
		e.addIdleWorker(p)
	}
	e.reply(Queued).Ticket = interlock.Ticket{ID: p.id}
}

// pulledBefore answers a pull that was given something before: with what of it still
// runs, which may be nothing.
func (e *Engine) pulledBefore(c *Pull, sess *session) bool {
	s := e.pendingWork.ns
	if s == nil {
		return false
	}
	var attempts []*request
	for _, id := range c.Leases[:c.Max] {
		r := s.request(id)
		if r == nil {
			continue
		}
		if r.attemptAt().IsZero() || r.session() != sess && !r.isOver() {
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

// addIdleWorker makes a worker one of the idle ones of its queue.
func (e *Engine) addIdleWorker(p *pull) {
	s := &p.queue.ns.tasks
	if s.pulls == nil {
		s.pulls = map[[16]byte]*pull{}
	}
	s.pulls[p.id] = p
	s.idle.Add(p)
	p.queue.enter(p)
	if p.sess != nil {
		p.sess.pulls.PushBack(&p.mine)
	} else {
		s.loose++
	}
	e.needsDispatch(p.queue)
}

// dismiss ends a worker's pull.
func (p *pull) dismiss() {
	s := &p.queue.ns.tasks
	delete(s.pulls, p.id)
	s.idle.Remove(p)
	p.queue.leave(p)
	if p.sess != nil {
		p.sess.pulls.Remove(&p.mine)
	} else {
		s.loose--
	}
}

// dismissal is the idle workers of one principal that have lost their queue, or the right to
// pull from it. They belong to no crew of the queue any more, so nothing is handed to them.
type dismissal struct {
	crew *workerGroup
	no   *refusal
}

// dismissPulls dismisses the idle workers of a queue that why refuses, and reports it to them:
// at once to as many as the step may, to the others in later steps.
func (e *Engine) dismissPulls(q *queue, why func(*interlock.Principal) *refusal) {
	e.objects += len(q.crews)
	q.crews = slices.DeleteFunc(q.crews, func(c *workerGroup) bool {
		no := why(c.by)
		if no != nil {
			e.dismissed.Push(dismissal{c, no})
			q.parted = true
		}
		return no != nil
	})
	e.dismissMore()
}

// dismissMore continues the dismissals.
func (e *Engine) dismissMore() {
	for e.dismissed.Len() > 0 {
		d := e.dismissed.At(0)
		for d.crew.idle.Len() > 0 {
			if e.full() {
				return
			}
			e.objects++
			p := d.crew.idle.Front().Value
			p.dismiss()
			eff := e.effect(p.caller, Refused)
			eff.Ticket.ID, eff.Code, eff.Message = p.id, d.no.code, d.no.message
		}
		e.dismissed.Pop()
	}
}

// endPulls ends those of a session that is over, and reports whether none is left.
func (e *Engine) endPulls(sess *session) (done bool) {
	for sess.pulls.Len() > 0 {
		if e.full() {
			return false
		}
		e.objects++
		p := sess.pulls.Front().Value
		p.dismiss()
		eff := e.effect(p.caller, Refused)
		eff.Ticket.ID = p.id
		eff.Code, eff.Message = interlock.CodeSessionEnded, message.New(message.WorkerSessionOver)
	}
	return true
}
