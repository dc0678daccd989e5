package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// partyBytes bounds the event that admits or dismisses one party, so that a whole
// generation is sure to fit in a step: MaxParties of them are less than stepBytes.
const partyBytes = stepBytes / interlock.MaxParties

// open admits the generation that r completes. If something else blocks one of its parties,
// open watches that party there instead.
func (e *Engine) open(r *store.Request) bool {
	list := r.GatheredAt(r.Barrier())
	for _, w := range list {
		if i := w.LockedOut(); i >= 0 {
			e.Watch(r, len(r.Needs())-1)
			e.Watch(w, i)
			return false
		}
	}
	for _, w := range list {
		e.admit(w)
	}
	return true
}

// lostState returns the word for the effect of an event on a party.
func lostState(ev *record.Event) string {
	if ev.Kind == record.Parked {
		return "parked"
	}
	return ev.Reason.String()
}

// breakUp lists the waiters of the generation that loses a party by an event.
func (e *Engine) breakUp(ev *record.Event) {
	switch ev.Kind {
	case record.Left, record.Grace, record.Closed, record.Ended, record.Parked:
	default:
		return
	}
	r := e.Hint.Req
	if r == nil || ev.Reason == record.ByBreak {
		return
	}
	if m := r.Barrier(); m != nil {
		for _, w := range r.GatheredAt(m) {
			if w != r {
				e.Broken = append(e.Broken, store.BrokenBarrier{Req: w, Num: r.Num, Who: r.AgentName(), What: lostState(ev)})
			}
		}
	}
}

// dismiss refuses the waiters of broken generations.
func (e *Engine) dismiss() {
	for _, b := range e.Broken {
		if b.Req.Phase == store.Waiting {
			ev := e.leaving(b.Req, record.ByBreak)
			ev.By, ev.Asker, ev.Outcome = b.Num, b.Who, b.What
			e.giveUp(b.Req, ev)
		}
	}
	clear(e.Broken)
	e.Broken = e.Broken[:0]
}

// meet answers an Acquire for a barrier or a membership that its party has already,
// so that none is counted twice, and one that comes to it with another number or is
// one too many. It reports whether it did.
func (c *Acquire) meet(e *Engine, r *store.Request) bool {
	m := r.Gathering()
	if m == nil {
		return false
	}
	size, x := m.Node.SizeOf(m.Counts), r.There(m)
	switch {
	case size != 0 && size != r.CountOf(m):
		e.refuse(
			interlock.CodeMismatch,
			message.New(
				message.BarrierMismatch, message.Str(c.Claims[0].Key), message.Str(c.Claims[0].Mode.String()), message.Num(size),
			),
		)
	case x != nil:
		e.know(x)
		e.follow(x, c.Attach)
		e.out.Effects[e.replied].Lease.Reused = x.Phase != store.Waiting
	case m.Node.Divided != nil && len(m.Node.Divided.Members) >= interlock.MaxParts:
		e.refuse(
			interlock.CodeTooManyLeases,
			message.New(message.MembersAtLimit, message.Str(c.Claims[0].Key), message.Num(interlock.MaxParts)),
		)
	default:
		return false
	}
	return true
}

// decide enqueues the holder of a party's lease for the next generation.
func (c *Arrive) decide(e *Engine) {
	if code, problem := checkMaxWait(c.MaxWait); code != "" {
		e.refuse(code, problem)
		return
	}
	l := e.findHeld(c.Lease)
	if l == nil {
		return
	}
	m := l.Barrier()
	switch {
	case m == nil:
		e.refuse(interlock.CodeInvalidRequest, message.New(message.NotABarrierParty, message.Str(l.Claims()[0].Key)))
		return
	case l.Phase == store.InGrace:
		e.refuseInGrace(l)
		return
	case l.Phase != store.Held:
		e.refuse(interlock.CodeUnknownLease, message.New(message.OnlyOffered))
		return
	case l.Conversion != nil:
		e.follow(l.Conversion, c.Attach)
		return
	case m.Node.Broken():
		e.refuse(interlock.CodeBroken, message.New(message.BarrierBroken, message.Str(l.Claims()[0].Key)))
		return
	}
	if code, problem := e.closedFor(); code != "" {
		e.refuse(code, problem)
		return
	}
	if e.isTaken(c.ID) {
		return
	}
	r := (&Convert{Head: c.Head, ID: c.ID, Claims: l.Claims(), MaxWait: c.MaxWait}).newRequest(e, l)
	if !e.queue(r, interlock.Wait, c.Attach) {
		e.Discard(r)
	}
}

func (c *Arrive) again(e *Engine, a *store.StoredAnswer) { e.answerAgain(a, c.Attach) }
