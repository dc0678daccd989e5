package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Request ids: the same id gets the same answer, so a client that lost an answer
// can ask again and nothing happens twice.

// storedAnswer is the record of a command that was carried out.
type storedAnswer struct {
	at          Time
	fingerprint uint64
	id          [16]byte // of the request or session that it made
	outcome     Outcome
	reused      bool
	made        objectKind // what it made, which has that id
	code        interlock.Code
	message     *message.Text
	version     interlock.Version // that a commit made
}

// seqWindow remembers the answers to a session's numbered commands: those above
// floor. It is a ring indexed by the number, which grows as far as needed.
type seqWindow struct {
	floor uint64
	ring  []seqAnswer
}

type seqAnswer struct {
	seq uint64
	storedAnswer
}

// maxWindow bounds how many answers a stream's session keeps when its client does
// not say what it has seen.
const maxWindow = 4096

func (w *seqWindow) get(seq uint64) (a *storedAnswer, tooOld bool) {
	if seq <= w.floor {
		return nil, true
	}
	if len(w.ring) > 0 {
		if slot := &w.ring[seq%uint64(len(w.ring))]; slot.seq == seq {
			return &slot.storedAnswer, false
		}
	}
	return nil, false
}

func (w *seqWindow) put(seq, acked uint64, a storedAnswer) {
	w.floor = max(w.floor, min(acked, seq-1))
	for seq-w.floor > uint64(len(w.ring)) {
		if len(w.ring) == maxWindow {
			w.floor = seq - maxWindow
			break
		}
		grown := make([]seqAnswer, max(8, 2*len(w.ring)))
		for _, slot := range w.ring {
			if slot.seq > w.floor {
				grown[slot.seq%uint64(len(grown))] = slot
			}
		}
		w.ring = grown
	}
	w.ring[seq%uint64(len(w.ring))] = seqAnswer{seq, a}
}

// tag makes an event carry the command's request id, so that it is remembered
// with what it did.
func (e *Engine) tag(ev *record.Event, answer Outcome) {
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
		ev.Scope = s.num
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
func (e *Engine) scope() *session {
	if space := e.pendingWork.ns; space != nil && !e.head.Session.IsZero() {
		return space.sessions[e.head.Session]
	}
	return nil
}

// evolveAnswer remembers an answer.
func (e *State) evolveAnswer(ev *record.Event) {
	a := storedAnswer{
		at: ev.At, fingerprint: ev.Fingerprint, id: ev.ID, outcome: ev.Answer, code: ev.Code, message: ev.Reply(),
		version: ev.Version, reused: ev.Kind == record.Answered && ev.Offer, made: objectKind(ev.Made),
	}
	if ev.Seq != 0 {
		if s := e.numbered(ev.Namespace, ev.Scope); s != nil {
			s.seqs.put(ev.Seq, ev.Acked, a)
		}
		return
	}
	s := e.ns(ev.Namespace)
	w, limit, keep := &s.ids, e.windows.namespace, 0
	if ev.Scope != 0 {
		x := e.numbered(ev.Namespace, ev.Scope)
		if x == nil {
			return
		}
		w, limit, keep = &x.ids, e.windows.session, e.windows.least
	}
	if ev.Kind == record.Answered && ev.Freed && s.lives(a.thing(), a.at) {
		s.keep(w, ev.RequestID, a)
		return
	}
	s.remember(w, ev.RequestID, a, limit, keep)
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
		code, problem := checkTexts(text{"request id", h.RequestID, interlock.MaxRequestIDBytes})
		e.refuse(code, problem)
		return true
	}
	e.print = fingerprint(c)
	var known *storedAnswer
	s := e.scope()
	if s == nil && (h.Seq != 0 || !h.Session.IsZero()) {
		return false // its scope is gone, and what was remembered in it
	}
	switch space := e.spaces[h.Namespace]; {
	case h.Seq != 0:
		var tooOld bool
		if known, tooOld = s.seqs.get(h.Seq); tooOld {
			e.refuse(interlock.CodeRequestTooOld, message.New(message.NumberAcknowledged))
			return true
		}
	case s != nil:
		known = space.recall(&s.ids, h.scopedID(), e.now)
	case space != nil:
		known = space.recall(&space.ids, h.scopedID(), e.now)
	}
	if known == nil || !c.counts(e, known) {
		return false
	}
	if known.fingerprint != e.print {
		e.refuse(interlock.CodeRequestIDReused, message.New(message.RequestIDUsed))
		return true
	}
	c.again(e, known)
	e.out.Effects[e.replied].Repeated = true
	return true
}

// again repeats the outcome: see answerAgain.
func (h *Head) again(e *Engine, a *storedAnswer) { e.answerAgain(a, false) }

// answerAgain answers how a request that was answered before stands by now, and returns nil; or
// repeats the outcome of another answer, and returns it.
func (e *Engine) answerAgain(a *storedAnswer, attach bool) *Effect {
	if a.outcome == Granted || a.outcome == Queued {
		e.followAgain(a, attach)
		return nil
	}
	eff := e.reply(a.outcome)
	eff.Code, eff.Message = a.code, a.message
	return eff
}

// followAgain answers how a request that was answered before stands by now.
func (e *Engine) followAgain(a *storedAnswer, attach bool) {
	if r := e.find(a.id, interlock.CodeUnknownLease); r != nil {
		e.follow(r, attach)
		e.out.Effects[e.replied].Lease.Reused = a.reused
	}
}

// respell returns claims that were admitted once the spelling that their keys have by
// now, and reports whether they can still be claimed together.
func (e *Engine) respell(claims []interlock.Claim) bool {
	if code, _ := checkForm(claims); code != "" {
		return false
	}
	for i := range claims {
		_, claims[i].Key = e.pendingWork.ns.fit(claims[i].Key)
	}
	_, twice := duplicate(claims)
	return !twice
}

// remember emits what is to be remembered of a command that no event of its own
// speaks of.
func (e *Engine) remember(cmd Command) {
	h := e.head
	c, ok := h.repeatable(cmd)
	if e.tagged || e.replied < 0 || !ok {
		return
	}
	eff := &e.out.Effects[e.replied]
	if eff.Outcome == Refused && (eff.Code != interlock.CodeHeld || !c.remembersHeld()) {
		return
	}
	if eff.Outcome == Queued && eff.Question != nil { // it waits for an answer, and is asked for again
		return
	}
	id := [16]byte(eff.Lease.ID)
	if eff.Outcome == Queued {
		id = eff.Ticket.ID // an earlier request's
	}
	if eff.Effect != nil {
		id = eff.Effect.ID
	}
	*e.draft() = record.Event{Kind: record.Answered, Namespace: h.Namespace, ID: id, Code: eff.Code, Offer: eff.Lease.Reused, Version: eff.Version, Actor: h.Actor}
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
