package engine

import (
	"crypto/sha256"
	"time"

	"github.com/interlockdev/interlock"
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
	var lease *request
	if !c.Lease.IsZero() {
		if lease = e.findUsable(c.Lease); lease == nil {
			return
		}
	}
	who := c.claimer(sess, lease)
	s := &e.ns(c.Namespace).sideEffects
	d := s.at(sha256.Sum256([]byte(c.Action)), e.now)
	if d != nil && (d.state == interlock.EffectDone || e.lives(d) && d.isOf(who)) {
		e.reply(Done).Effect = e.showDeed(d, d.isOf(who))
		return
	}
	if d != nil && d.state != 0 {
		e.refuseDeed(d, d.isOf(who))
		return
	}
	if code, problem := e.closedFor(); code != "" {
		e.refuse(code, problem)
		return
	}
	if x := s.of(c.ID, e.now); x != nil && x != d {
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
		Kind: record.EffectChanged, Namespace: c.Namespace, ID: c.ID, Blob: []byte(c.Action), Terms: interlock.Terms{TTL: who.ttl}, BaseID: who.lease,
		Session: who.session, SessionName: who.name, Agent: who.agent, Flow: who.flow, Actor: c.Actor, Generation: 1,
	}
	if d != nil {
		e.ev.Generation = d.attempt + 1
	}
	e.tag(e.ev, Done)
	e.emit(e.ev)
	e.reply(Done).Effect = e.showDeed(s.of(c.ID, e.now), true)
}

// claimer returns the identity for claiming a side effect: the holder of the lease, if there is
// one.
func (c *ClaimEffect) claimer(sess *session, lease *request) *sideEffect {
	d := &sideEffect{id: c.ID, lease: c.Lease, agent: c.Agent}
	switch {
	case lease != nil:
		d.agent, d.flow, sess = lease.agentName(), lease.flowName(), lease.session()
	case sess != nil:
		d.agent, d.flow = sess.agent, flowOr(c.Flow)
	case c.TTL == 0:
		d.ttl = interlock.DefaultEffectTTL
	default:
		d.ttl = c.TTL
	}
	if sess != nil {
		d.session, d.name = sess.num, sess.name
	}
	return d
}

// isOf reports whether d was claimed by who: by the same flow of a session, under the same
// lease, or by this very command.
func (d *sideEffect) isOf(who *sideEffect) bool {
	return d.id == who.id || d.session != 0 && d.session == who.session && d.flow == who.flow || !d.lease.IsZero() && d.lease == who.lease
}

// makeRoom forgets done side effects that are old enough, if there is no room for n more with so
// many bytes. If that does not suffice it refuses the command.
func (e *Engine) makeRoom(n, bytes int, advice *message.Text) bool {
	sp := e.ns(e.head.Namespace)
	s, retention := &sp.sideEffects, sp.effectRetention()
	forget, looks, ok := s.room(n, bytes, e.mostDeeds, retention, e.now)
	e.objects += looks
	if !ok {
		e.refuse(interlock.CodeTooManyEffects, e.noRoom(s, retention, advice))
		return false
	}
	if forget > 0 {
		*e.draft() = record.Event{Kind: record.EffectsForgotten, Namespace: sp.name, Num: uint64(forget)}
		e.emit(e.ev)
	}
	return true
}

// noRoom returns what is remembered, and when the next of it makes room.
func (e *Engine) noRoom(s *sideEffects, retention time.Duration, advice *message.Text) *message.Text {
	open, done := len(s.known)-s.done.Len()-s.free.Len(), s.done.Len()
	var kept, oldest, settle, forget *message.Text
	known := open + done
	for d := range s.done.All {
		if d.isPast(e.now) {
			done--
			continue
		}
		kept = message.New(message.EffectsDone, message.Num(done), message.Dur(retention))
		if left := d.settled.Add(retention).Sub(e.now); left > 0 {
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
		message.Num(known), message.Num(s.bytesAt(e.now)), message.Num(e.mostDeeds), message.Num(interlock.MaxEffectBytes), message.Num(open),
		message.Sub(kept), message.Sub(oldest), message.Sub(settle), message.Sub(forget), message.Sub(advice))
}

// decide forgets done side effects before their time.
func (c *ForgetEffects) decide(e *Engine) {
	switch {
	case c.OlderThan < 0 || c.OlderThan > interlock.EffectWindow || c.One && c.OlderThan > 0:
		e.refuse(interlock.CodeInvalidRequest, message.New(message.EffectAgeToForget, message.Dur(time.Duration(interlock.EffectWindow))))
		return
	case e.pendingWork.ns == nil && c.One:
		e.refuse(interlock.CodeUnknownEffect, message.New(message.UnknownEffect))
		return
	case e.pendingWork.ns == nil:
		e.reply(Done)
		return
	}
	s := &e.pendingWork.ns.sideEffects
	*e.draft() = record.Event{Kind: record.EffectsForgotten, Namespace: c.Namespace, Actor: c.Actor}
	n, more := 0, false
	if c.One {
		d := s.at(c.Digest, e.now)
		switch {
		case d == nil:
			e.refuse(interlock.CodeUnknownEffect, message.New(message.UnknownEffect))
			return
		case s.chainOf(d.state) == nil:
			e.refuseDeed(d, false)
			return
		}
		e.ev.Blob, n = c.Digest[:], 1
	} else {
		for d := range s.done.All {
			if d.isPast(e.now) {
				continue
			}
			if e.now.Sub(d.settled) < c.OlderThan {
				break
			}
			if more = n == interlock.MaxForget; more {
				break
			}
			n++
		}
		e.ev.Num = uint64(n)
	}
	e.objects += n
	if n > 0 {
		e.emit(e.ev)
	}
	eff := e.reply(Done)
	eff.Forgotten, eff.More = n, more
}

// refuseDeed refuses to claim or settle a side effect that is claimed, done, or unknown.
func (e *Engine) refuseDeed(d *sideEffect, mine bool) {
	code, problem := interlock.CodeEffectUnknown, message.New(message.EffectMayHaveHappened)
	switch {
	case e.lives(d):
		code, problem = interlock.CodeEffectClaimed, message.New(message.EffectClaimed)
	case d.state == interlock.EffectDone:
		code, problem = interlock.CodeEffectDone, message.New(message.EffectDone)
	case d.state == 0:
		code, problem = interlock.CodeEffectDone, message.New(message.EffectNotDone)
	}
	e.refuse(code, problem).Effect = e.showDeed(d, mine)
}

// again answers a claim that was answered before with how the side effect stands by
// now.
func (c *ClaimEffect) again(e *Engine, a *storedAnswer) {
	s := &e.pendingWork.ns.sideEffects
	d := s.of(a.id, e.now)
	mine := d != nil && d.id == a.id && (c.ID == a.id || !c.Session.IsZero() || !c.Lease.IsZero())
	if a.id == (interlock.EffectID{}) { // it was done by another caller
		d = s.at(sha256.Sum256([]byte(c.Action)), e.now)
	}
	switch {
	case d == nil:
		e.refuse(interlock.CodeUnknownEffect, message.New(message.ClaimForgotten))
	case d.state == interlock.EffectDone, e.lives(d) && (mine || d.id != a.id):
		e.reply(Done).Effect = e.showDeed(d, mine)
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
	d := e.settling(c)
	switch {
	case d == nil:
		e.refuse(interlock.CodeUnknownEffect, message.New(message.NothingClaimed))
		return
	case d.state == c.State && d.result == c.Result && d.reason == c.Reason:
		e.reply(Done).Effect = e.showDeed(d, mine)
		return
	case d.state == interlock.EffectDone, !mine && (d.state == 0 || e.lives(d)):
		e.refuseDeed(d, mine)
		return
	}
	if more := len(c.Result) + len(c.Reason) - len(d.result) - len(d.reason); more > 0 && !e.makeRoom(0, more, message.New(message.SettleWithLessText)) {
		return
	}
	*e.draft() = record.Event{
		Kind: record.EffectChanged, Namespace: c.Namespace, ID: d.id, Op: uint8(c.State), Result: c.Result, Outcome: c.Reason, Actor: c.Actor,
	}
	if sess := e.scope(); sess != nil {
		e.ev.Session, e.ev.Agent = sess.num, sess.agent
	}
	e.tag(e.ev, Done)
	e.emit(e.ev)
	e.reply(Done).Effect = e.showDeed(d, mine)
}

// again answers what was answered before, with all that is still known.
func (c *SettleEffect) again(e *Engine, a *storedAnswer) {
	s := &e.pendingWork.ns.sideEffects
	d := s.of(a.id, e.now)
	if d != nil && d.state == c.State {
		e.reply(Done).Effect = e.showDeed(d, d.id == c.ID)
		return
	}
	e.reply(Done).Effect = &interlock.Effect{Digest: c.Digest, ID: c.ID, State: c.State, Result: c.Result, Reason: c.Reason}
}

// settling finds the side effect that a command is about.
func (e *Engine) settling(c *SettleEffect) *sideEffect {
	s := e.pendingWork.ns
	switch {
	case s == nil:
		return nil
	case c.ID.IsZero():
		return s.sideEffects.at(c.Digest, e.now)
	}
	return s.sideEffects.of(c.ID, e.now)
}
