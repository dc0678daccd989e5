package engine

import (
	"crypto/sha256"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// decide claims an action for a caller, unless it is done, or may be.
func (c *ClaimEffect) decide(e *Engine) {
	sess, ok := e.caller()
	if !ok {
		return
	}
	if code, problem := checkClaimEffect(c); code != "" {
		e.refuse(code, problem)
		return
	}
	if problem := e.noRoomForSpace(); problem != nil {
		e.refuse(interlock.CodeTooManyNamespaces, problem)
		return
	}
	var lease *store.Request
	if !c.Lease.IsZero() {
		if lease = e.findUsable(c.Lease); lease == nil {
			return
		}
	}
	who := c.claimer(sess, lease)
	s := &e.Namespace(c.Namespace).SideEffects
	d := s.At(sha256.Sum256([]byte(c.Action)), e.Clock)
	mine := d != nil && d.ID == c.ID // a claim is that of the attempt, also within one flow or under one lease
	if d != nil && (d.State == interlock.EffectDone || d.Lives(e.PendingWork.NS) && mine) {
		e.reply(Done).Effect = showEffect(d, e.PendingWork.NS, mine)
		return
	}
	if d != nil && d.State != 0 {
		e.refuseDeed(d, mine)
		return
	}
	if code, problem := e.closedFor(); code != "" {
		e.refuse(code, problem)
		return
	}
	if x := s.Of(c.ID, e.Clock); x != nil && x != d {
		e.refuseFor(idTaken("claim"))
		return
	}
	if d == nil && !e.makeRoom(1, len(c.Action), nil) {
		return
	}
	if lease != nil {
		e.claim(lease)
	}
	*e.draft() = record.Event{
		Kind: record.EffectChanged, Namespace: c.Namespace, ID: c.ID, Blob: []byte(c.Action),
		Terms: interlock.Terms{TTL: who.TTL}, BaseID: who.Lease,
		Session: who.Session, SessionName: who.Name, Agent: who.Agent, Flow: who.Flow, Actor: c.Actor, Generation: 1,
	}
	if d != nil {
		e.ev.Generation = d.Attempt + 1
	}
	e.tag(e.ev, Done)
	e.emit(e.ev)
	e.reply(Done).Effect = showEffect(s.Of(c.ID, e.Clock), e.PendingWork.NS, true)
}

// claimer returns the identity for claiming a side effect: the holder of the lease, if there is
// one.
func (c *ClaimEffect) claimer(sess *store.Session, lease *store.Request) *store.SideEffect {
	d := &store.SideEffect{ID: c.ID, Lease: c.Lease, Agent: c.Agent}
	switch {
	case lease != nil:
		d.Agent, d.Flow, sess = lease.AgentName(), lease.FlowName(), lease.Session()
	case sess != nil:
		d.Agent, d.Flow = sess.Agent, flowOr(c.Flow)
	case c.TTL == 0:
		d.TTL = interlock.DefaultEffectTTL
	default:
		d.TTL = c.TTL
	}
	if sess != nil {
		d.Session, d.Name = sess.Num, sess.Name
	}
	return d
}

// makeRoom forgets done side effects that are old enough, if there is no room for n more with so
// many bytes. If that does not suffice it refuses the command.
func (e *Engine) makeRoom(n, bytes int, advice *message.Text) bool {
	sp := e.Namespace(e.head.Namespace)
	s, retention := &sp.SideEffects, sp.EffectRetention()
	forget, looks, ok := s.Room(n, bytes, e.mostDeeds, retention, e.Clock)
	e.Visited += looks
	if !ok {
		e.refuse(interlock.CodeTooManyEffects, e.noRoom(s, retention, advice))
		return false
	}
	if forget > 0 {
		*e.draft() = record.Event{Kind: record.EffectsForgotten, Namespace: sp.Name, Num: uint64(forget)}
		e.emit(e.ev)
	}
	return true
}

// noRoom returns the message of a refusal for lack of room: the number of effects, and when the oldest
// makes room.
func (e *Engine) noRoom(s *store.SideEffects, retention time.Duration, advice *message.Text) *message.Text {
	open, done := len(s.Known)-s.Done.Len()-s.Free.Len(), s.Done.Len()
	var kept, oldest, settle, forget *message.Text
	known := open + done
	for d := range s.Done.All {
		if d.IsPast(e.Clock) {
			done--
			continue
		}
		kept = message.New(message.EffectsDone, message.Num(done), message.Dur(retention))
		if left := d.Settled.Add(retention).Sub(e.Clock); left > 0 {
			oldest = message.New(message.OldestMakesRoom, message.Dur(max(left.Round(time.Second), time.Second)))
		}
		break
	}
	if open > 0 {
		settle = message.New(message.SettleOpenEffects)
	}
	if done > 0 {
		forget = message.New(message.ForgetDoneEffects)
	}
	return message.New(message.EffectsAtLimit,
		message.Num(known), message.Num(s.BytesAt(e.Clock)), message.Num(e.mostDeeds), message.Num(interlock.MaxEffectBytes),
		message.Num(open),
		message.Sub(kept), message.Sub(oldest), message.Sub(settle), message.Sub(forget), message.Sub(advice))
}

// decide forgets done side effects before their time.
func (c *ForgetEffects) decide(e *Engine) {
	switch {
	case c.OlderThan < 0 || c.OlderThan > interlock.EffectWindow || c.One && c.OlderThan > 0:
		e.refuse(
			interlock.CodeInvalidRequest,
			message.New(message.EffectAgeToForget, message.Dur(time.Duration(interlock.EffectWindow))),
		)
		return
	case e.PendingWork.NS == nil && c.One:
		e.refuse(interlock.CodeUnknownEffect, message.New(message.UnknownEffect))
		return
	case e.PendingWork.NS == nil:
		e.reply(Done)
		return
	}
	s := &e.PendingWork.NS.SideEffects
	*e.draft() = record.Event{Kind: record.EffectsForgotten, Namespace: c.Namespace, Actor: c.Actor}
	n, more := 0, false
	if c.One {
		d := s.At(c.Digest, e.Clock)
		switch {
		case d == nil:
			e.refuse(interlock.CodeUnknownEffect, message.New(message.UnknownEffect))
			return
		case s.ChainOf(d.State) == nil:
			e.refuseDeed(d, false)
			return
		}
		e.ev.Blob, n = c.Digest[:], 1
	} else {
		for d := range s.Done.All {
			if d.IsPast(e.Clock) {
				continue
			}
			if e.Clock.Sub(d.Settled) < c.OlderThan {
				break
			}
			if more = n == interlock.MaxForget; more {
				break
			}
			n++
		}
		e.ev.Num = uint64(n)
	}
	e.Visited += n
	if n > 0 {
		e.emit(e.ev)
	}
	eff := e.reply(Done)
	eff.Forgotten, eff.More = n, more
}

// refuseDeed refuses to claim or settle a side effect that is claimed, done, or unknown.
func (e *Engine) refuseDeed(d *store.SideEffect, mine bool) {
	code, problem := interlock.CodeEffectUnknown, message.New(message.EffectMayHaveHappened)
	switch {
	case d.Lives(e.PendingWork.NS):
		code, problem = interlock.CodeEffectClaimed, message.New(message.EffectClaimed)
	case d.State == interlock.EffectDone:
		code, problem = interlock.CodeEffectDone, message.New(message.EffectDone)
	case d.State == 0:
		code, problem = interlock.CodeEffectDone, message.New(message.EffectNotDone)
	}
	e.refuse(code, problem).Effect = showEffect(d, e.PendingWork.NS, mine)
}

// again answers a claim that was answered before with how the side effect stands by
// now.
func (c *ClaimEffect) again(e *Engine, a *store.StoredAnswer) {
	s := &e.PendingWork.NS.SideEffects
	d := s.Of(a.ID, e.Clock)
	mine := d != nil && d.ID == a.ID && (c.ID == a.ID || !c.Session.IsZero() || !c.Lease.IsZero())
	if a.ID == (interlock.EffectID{}) { // it was done by another caller
		d = s.At(sha256.Sum256([]byte(c.Action)), e.Clock)
	}
	switch {
	case d == nil:
		e.refuse(interlock.CodeUnknownEffect, message.New(message.ClaimForgotten))
	case d.State == interlock.EffectDone, d.Lives(e.PendingWork.NS) && (mine || d.ID != a.ID):
		e.reply(Done).Effect = showEffect(d, e.PendingWork.NS, mine)
	default:
		e.refuseDeed(d, mine)
	}
}

// decide takes in what became of a side effect.
func (c *SettleEffect) decide(e *Engine) {
	if code, problem := checkSettleEffect(c); code != "" {
		e.refuse(code, problem)
		return
	}
	mine := !c.ID.IsZero()
	d := c.sideEffect(e)
	switch {
	case d == nil:
		e.refuse(interlock.CodeUnknownEffect, message.New(message.NothingClaimed))
		return
	case d.State == c.State && d.Result == c.Result && d.Reason == c.Reason:
		e.reply(Done).Effect = showEffect(d, e.PendingWork.NS, mine)
		return
	case d.State == interlock.EffectDone, !mine && (d.State == 0 || d.Lives(e.PendingWork.NS)):
		e.refuseDeed(d, mine)
		return
	}
	if more := len(c.Result) + len(c.Reason) - len(d.Result) - len(d.Reason); more > 0 &&
		!e.makeRoom(0, more, message.New(message.SettleWithLessText)) {
		return
	}
	*e.draft() = record.Event{
		Kind: record.EffectChanged, Namespace: c.Namespace, ID: d.ID, Op: uint8(c.State), Result: c.Result,
		Outcome: c.Reason, Actor: c.Actor,
	}
	if sess := e.scope(); sess != nil {
		e.ev.Session, e.ev.Agent = sess.Num, sess.Agent
	}
	e.tag(e.ev, Done)
	e.emit(e.ev)
	e.reply(Done).Effect = showEffect(d, e.PendingWork.NS, mine)
}

// again repeats the answer with the present state of the side effect, as far as it is known.
func (c *SettleEffect) again(e *Engine, a *store.StoredAnswer) {
	s := &e.PendingWork.NS.SideEffects
	d := s.Of(a.ID, e.Clock)
	if d != nil && d.State == c.State {
		e.reply(Done).Effect = showEffect(d, e.PendingWork.NS, d.ID == c.ID)
		return
	}
	e.reply(Done).Effect = &SideEffect{Reason: message.Plain(c.Reason), Effect: interlock.Effect{
		Digest: c.Digest, ID: c.ID, State: c.State, Result: c.Result,
	}}
}

// sideEffect returns the side effect that the command names, or nil.
func (c *SettleEffect) sideEffect(e *Engine) *store.SideEffect {
	s := e.PendingWork.NS
	switch {
	case s == nil:
		return nil
	case c.ID.IsZero():
		return s.SideEffects.At(c.Digest, e.Clock)
	}
	return s.SideEffects.Of(c.ID, e.Clock)
}
