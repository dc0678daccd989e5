package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/record"
)

func (c *Poll) decide(e *Engine) {
	if r := e.find(c.Ticket, interlock.CodeUnknownTicket); r != nil {
		e.follow(r, c.Attach)
	}
}

// follow answers how a request stands, and takes up its offer.
func (e *Engine) follow(r *store.Request, attach bool) {
	switch r.Phase {
	case store.Waiting:
		r.Renewed = e.Clock
		if attach {
			e.listen(r)
		} else if e.unlisten(r, e.head.Link); r.Phase != store.Waiting {
			e.replyOver(r)
			return
		}
		e.Arm(r)
		e.replyQueued(r)
	case store.Parked, store.Away:
		e.refuseParked(r)
	case store.Closed, store.Over:
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
func (e *Engine) listen(r *store.Request) {
	e.listens++
	r.Wait.Caller, r.Wait.Link, r.Wait.Since = e.head.From, e.head.Link, e.listens
}

// unlisten removes the listener of a waiting request over a link, if there is one. The wait for
// a run ends with that.
func (e *Engine) unlisten(r *store.Request, link uint64) {
	switch w := r.Wait; {
	case w.Caller == nil || w.Link != link:
	case r.IsToStart():
		e.cancelUnattended(r)
	default:
		w.Caller, r.Renewed = nil, e.Clock
		e.Arm(r)
	}
}

// claim takes up an offer, if r is one.
func (e *Engine) claim(r *store.Request) {
	if r.Phase == store.Offered {
		ev := e.event(record.Claimed, r)
		ev.Version = r.MovedUpTo()
		e.emit(ev)
		e.Arm(r)
	}
}

func (c *Leave) decide(e *Engine) {
	if s := e.PendingWork.NS; s != nil && s.Tasks.Pulls[c.Ticket] != nil {
		s.Tasks.Pulls[c.Ticket].Dismiss()
		e.reply(Done)
		return
	}
	if s := e.PendingWork.NS; s != nil && s.Tasks.Known[interlock.TaskID(c.Ticket)] != nil {
		(&Detach{Head: c.Head, Ticket: c.Ticket}).detachTasks(e, s)
		e.reply(Done)
		return
	}
	r := e.find(c.Ticket, interlock.CodeUnknownTicket)
	if r == nil {
		return
	}
	switch r.Phase {
	case store.Parked, store.Away, store.Closed, store.Over:
	default:
		if r.Phase == store.Waiting || r.GoesBack() || r.StaysPut() {
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
