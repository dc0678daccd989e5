package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Request ids: the same id gets the same answer, so a client that lost an answer
// can ask again and nothing happens twice.

// tag makes an event carry the command's request id, so that it is remembered
// with what it did.
func (e *Engine) tag(ev *record.Event, answer interlock.Outcome) {
	h := e.head
	if h.Seq == 0 && h.RequestID == "" {
		return
	}
	s := e.scope()
	switch {
	case h.Seq != 0 && s != nil:
		ev.Seq, ev.Acked = h.Seq, h.Acked
	case h.Seq == 0 && h.RequestID != "" && (s != nil || h.Session.IsZero()):
		ev.RequestID, ev.Made = h.scopedID(), uint8(madeBy(ev))
	default:
		return
	}
	e.tagged = true
	ev.Answer, ev.Fingerprint = answer, e.print
	if s != nil {
		ev.Scope = s.Num
	}
}

// scopedID returns the id under which the answer to h is remembered: that of a principal
// begins with its name, so that no principal gets the answer to another one's request. A
// principal's name has no NUL.
func (h *Head) scopedID() string {
	if h.Actor == "" || h.RequestID == "" {
		return h.RequestID
	}
	return h.Actor + "\x00" + h.RequestID
}

// scope is the session in which the command's request id counts, or nil.
func (e *Engine) scope() *store.Session {
	if space := e.PendingWork.NS; space != nil && !e.head.Session.IsZero() {
		return space.Sessions[e.head.Session]
	}
	return nil
}

// repeat answers a command with a request id that was answered before, and reports whether it
// did.
func (e *Engine) repeat(cmd Command) bool {
	h := e.head
	c, ok := h.repeatable(cmd)
	if !ok {
		return false
	}
	if len(h.RequestID) > interlock.MaxRequestIDBytes {
		code, problem := store.CheckTexts(store.Text{
			Name: "request id", Value: h.RequestID, Limit: interlock.MaxRequestIDBytes,
		})
		e.refuse(code, problem)
		return true
	}
	e.print = c.fingerprint()
	var known *store.StoredAnswer
	s := e.scope()
	if s == nil && (h.Seq != 0 || !h.Session.IsZero()) {
		return false // its scope is gone, and what was remembered in it
	}
	switch space := e.Namespaces[h.Namespace]; {
	case h.Seq != 0:
		var tooOld bool
		if known, tooOld = s.Seqs.Get(h.Seq); tooOld {
			e.refuse(interlock.CodeRequestTooOld, message.New(message.NumberAcknowledged))
			return true
		}
	case s != nil:
		known = space.Recall(&s.IDs, h.scopedID(), e.Clock)
	case space != nil:
		known = space.Recall(&space.IDs, h.scopedID(), e.Clock)
	}
	if known == nil || !c.counts(e, known) {
		return false
	}
	if known.Fingerprint != e.print {
		e.refuse(interlock.CodeRequestIDReused, message.New(message.RequestIDUsed))
		return true
	}
	c.again(e, known)
	e.out.Effects[e.replied].Repeated = true
	return true
}

// again repeats the outcome: see answerAgain.
func (h *Head) again(e *Engine, a *store.StoredAnswer) { e.answerAgain(a, false) }

// answerAgain answers how a request that was answered before stands by now, and returns nil; or
// repeats the outcome of another answer, and returns it.
func (e *Engine) answerAgain(a *store.StoredAnswer, attach bool) *Effect {
	if a.Outcome == Granted || a.Outcome == Queued {
		e.followAgain(a, attach)
		return nil
	}
	eff := e.reply(a.Outcome)
	eff.Code, eff.Message = a.Code, a.Message
	return eff
}

// followAgain answers how a request that was answered before stands by now.
func (e *Engine) followAgain(a *store.StoredAnswer, attach bool) {
	if r := e.find(a.ID, interlock.CodeUnknownLease); r != nil {
		e.follow(r, attach)
		e.out.Effects[e.replied].Lease.Reused = a.Reused
	}
}

// respell returns claims that were admitted once the spelling that their keys have by
// now, and reports whether they can still be claimed together.
func (e *Engine) respell(claims []interlock.Claim) bool {
	if code, _ := checkForm(claims); code != "" {
		return false
	}
	for i := range claims {
		c := &claims[i]
		p, key := e.PendingWork.NS.Fit(c.Key)
		c.Key = key
		p.Complete(c)
	}
	_, twice := duplicate(claims)
	return !twice
}

// remember journals the answer to a repeatable command, unless an event of the command carries its
// request id.
func (e *Engine) remember(cmd Command) {
	h := e.head
	c, ok := h.repeatable(cmd)
	if e.tagged || e.replied < 0 || !ok {
		return
	}
	eff := &e.out.Effects[e.replied]
	if !c.remembers(eff) {
		return
	}
	id := [16]byte(eff.Lease.ID)
	if eff.Outcome == Queued {
		id = eff.Ticket.ID // an earlier request's
	}
	if eff.Effect != nil {
		id = eff.Effect.ID
	}
	*e.draft() = record.Event{
		Kind: record.Answered, Namespace: h.Namespace, ID: id, Code: eff.Code, Offer: eff.Lease.Reused, Version: eff.Version,
		Actor: h.Actor,
	}
	e.ev.SetReply(eff.Message)
	if e.tag(e.ev, eff.Outcome); e.tagged {
		e.emit(e.ev)
	}
}

// repeatable returns the command, if it has an id under which its answer is remembered.
func (h *Head) repeatable(cmd Command) (c repeatable, ok bool) {
	if h.RequestID == "" && h.Seq == 0 {
		return nil, false
	}
	c, ok = cmd.(repeatable)
	return c, ok
}
