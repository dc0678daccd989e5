package engine

import "github.com/interlockdev/interlock"

func (e *Engine) poll(c *Poll) {
	if r := e.find(c.Ticket, interlock.CodeUnknownTicket); r != nil {
		e.follow(r, c.Attach)
	}
}

// follow answers how a request stands, and takes up its offer.
func (e *Engine) follow(r *request, attach bool) {
	switch r.phase {
	case waiting:
		w := r.wait
		w.asked = e.now
		if attach {
			w.caller, w.link = e.head.From, e.head.Link
		} else if w.link == e.head.Link {
			w.caller = nil
		}
		e.arm(r)
		e.replyQueued(r)
	case closed, over:
		e.replyOver(r)
	default:
		e.claim(r)
		e.reply(Granted).Lease = e.lease(r)
	}
}

// claim takes up an offer, if r is one.
func (e *Engine) claim(r *request) {
	if r.phase == offered {
		e.emit(e.event(EvClaimed, r))
		e.arm(r)
		e.shareNow(r)
	}
}

func (e *Engine) leave(c *Leave) {
	r := e.find(c.Ticket, interlock.CodeUnknownTicket)
	if r == nil {
		return
	}
	switch r.phase {
	case waiting:
		caller := r.wait.caller
		ev := e.event(EvLeft, r)
		ev.Reason, ev.Waited, ev.Actor = ByLeaving, e.now.Sub(r.wait.arrived), c.Actor
		e.tag(ev, Done)
		e.emit(ev)
		if caller != nil {
			e.refuseGone(caller, r)
		}
	case closed, over:
	default:
		ev := e.ending(r, ByLeaving)
		ev.Actor = c.Actor
		e.tag(ev, Done)
		e.emit(ev)
	}
	e.reply(Done)
}
