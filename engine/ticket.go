package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

func (c *Poll) decide(e *Engine) {
	if r := e.find(c.Ticket, interlock.CodeUnknownTicket); r != nil {
		e.follow(r, c.Attach)
	}
}

// follow answers how a request stands, and takes up its offer.
func (e *Engine) follow(r *request, attach bool) {
	switch r.phase {
	case waiting:
		r.renewed = e.now
		if attach {
			e.listen(r)
		} else if e.unlisten(r, e.head.Link); r.phase != waiting {
			e.replyOver(r)
			return
		}
		e.arm(r)
		e.replyQueued(r)
	case parked, away:
		e.refuseParked(r)
	case closed, over:
		e.replyOver(r)
	default:
		if !e.mayTake(r) {
			return
		}
		e.claim(r)
		e.settle()
		e.replyGiven(r)
	}
}

// listen has the command's caller listen to a waiting request.
func (e *Engine) listen(r *request) {
	e.listens++
	r.wait.caller, r.wait.link, r.wait.since = e.head.From, e.head.Link, e.listens
}

// unlisten removes the listener of a waiting request over a link, if there is one. The wait for
// a run ends with that.
func (e *Engine) unlisten(r *request, link uint64) {
	switch w := r.wait; {
	case w.caller == nil || w.link != link:
	case r.isToStart():
		e.cancelUnattended(r)
	default:
		w.caller, r.renewed = nil, e.now
		e.arm(r)
	}
}

// claim takes up an offer, if r is one.
func (e *Engine) claim(r *request) {
	if r.phase == offered {
		ev := e.event(record.Claimed, r)
		ev.Version = r.movedUpTo()
		e.emit(ev)
		e.arm(r)
	}
}

func (c *Leave) decide(e *Engine) {
	if s := e.pendingWork.ns; s != nil && s.tasks.pulls[c.Ticket] != nil {
		s.tasks.pulls[c.Ticket].dismiss()
		e.reply(Done)
		return
	}
	if s := e.pendingWork.ns; s != nil && s.tasks.known[interlock.TaskID(c.Ticket)] != nil {
		e.detachTasks(s, &Detach{Head: c.Head, Ticket: c.Ticket})
		e.reply(Done)
		return
	}
	r := e.find(c.Ticket, interlock.CodeUnknownTicket)
	if r == nil {
		return
	}
	switch r.phase {
	case parked, away, closed, over:
	default:
		if r.phase == waiting || r.goesBack() || r.staysPut() {
			ev := e.leaving(r, record.ByLeaving)
			ev.Actor = c.Actor
			e.tag(ev, Done)
			e.giveUp(r, ev)
			break
		}
		ev := e.endCause(r, record.ByLeaving)
		ev.Actor = c.Actor
		e.tag(ev, Done)
		e.emit(ev)
	}
	e.reply(Done)
}
