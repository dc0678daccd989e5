package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// caller returns the session that issues the command, nil for none. If it is not alive, the
// command is refused and ok is false.
func (e *Engine) caller() (sess *store.Session, ok bool) {
	if e.head.Session.IsZero() {
		return nil, true
	}
	return e.living(e.head.Session)
}

// living returns a session that has not ended. If it has, or never was, the command
// is refused and ok is false.
func (e *Engine) living(id interlock.SessionID) (sess *store.Session, ok bool) {
	if sess = e.alive(id); sess != nil {
		return sess, true
	}
	space := e.PendingWork.NS
	if space != nil {
		why, ended := space.EndReasons[id]
		if s := space.Sessions[id]; s != nil {
			why, ended = s.Why, true
		}
		if ended {
			problem := message.New(message.SessionClosed)
			if why == record.ByDeath {
				problem = message.New(message.SessionDied)
			}
			e.refuse(interlock.CodeSessionEnded, problem)
			return nil, false
		}
	}
	e.refuse(interlock.CodeUnknownSession, message.New(message.UnknownSession))
	return nil, false
}

// alive returns a session that has not ended, or nil.
func (e *Engine) alive(id interlock.SessionID) *store.Session {
	space := e.PendingWork.NS
	if space == nil {
		return nil
	}
	s := space.Sessions[id]
	if s == nil {
		return nil
	}
	if e.endOverdue(s); s.Dead {
		return nil
	}
	return s
}

// endOverdue ends what of a session is due by now and was not reached yet.
func (e *Engine) endOverdue(s *store.Session) {
	if s.Timer.Pos >= 0 && s.Timer.At <= e.Clock {
		e.fire(&s.Timer)
	}
}

func (c *OpenSession) decide(e *Engine) {
	if problem := checkNamespace(c.Namespace); problem != nil {
		e.refuse(interlock.CodeInvalidNamespace, problem)
		return
	}
	if code, problem := store.CheckTexts(store.Text{
		Name: "agent", Value: c.Agent, Limit: interlock.MaxNameBytes,
	}); code != "" {
		e.refuse(code, problem)
		return
	}
	ttl := c.TTL
	if ttl == 0 {
		ttl = interlock.DefaultTTL
	}
	if code, problem := checkTTL(ttl); code != "" {
		e.refuse(code, problem)
		return
	}
	if code, problem := e.closedFor(); code != "" {
		e.refuse(code, problem)
		return
	}
	if problem := e.noRoomForSpace(); problem != nil {
		e.refuse(interlock.CodeTooManyNamespaces, problem)
		return
	}
	space := e.Namespace(c.Namespace)
	if space.Sessions[c.ID] != nil {
		e.refuseFor(idTaken("session"))
		return
	}
	if problem := space.TooManySessions(c.Actor); problem != nil {
		e.refuse(interlock.CodeTooManySessions, problem)
		return
	}
	*e.draft() = record.Event{
		Kind: record.SessionOpened, Namespace: c.Namespace, Session: e.SessionNum + 1, ID: c.ID, Agent: c.Agent,
		Terms: interlock.Terms{TTL: ttl}, Any: c.TTL == 0, Actor: c.Actor,
	}
	e.tag(e.ev, Done)
	e.emit(e.ev)
	s := space.Sessions[c.ID]
	e.Timers.Set(&s.Timer, e.Clock.Add(store.SoftAt(ttl)))
	e.reply(Done).Session = e.show(s)
}

// show describes a session to its client.
func (e *Engine) show(s *store.Session) Session {
	return Session{ID: s.ID, Name: s.Name, Agent: s.Agent, TTL: s.TTL, ExpiresIn: max(0, s.End().Sub(e.Clock))}
}

func (c *Heartbeat) decide(e *Engine) {
	if code, problem := store.CheckTexts(store.Text{
		Name: "progress", Value: c.Progress, Limit: interlock.MaxProgressBytes,
	}); code != "" {
		e.refuse(code, problem)
		return
	}
	s, ok := e.needSession()
	if !ok {
		return
	}
	losses := e.takeLosses(s)
	wantsList := false
	if c.Known == nil || s.Work > interlock.MaxKnown {
		e.knowAll(s)
	} else {
		wantsList, losses = e.compareKnown(s, c.Known, losses)
	}
	e.beat(s, c.Progress)
	if s.Timed > 0 && e.Clock >= s.TimedAt {
		losses = e.appendSoft(losses, s)
	}
	eff := e.reply(Done)
	eff.Session, eff.Losses, eff.WantsList = e.show(s), losses, wantsList
}

// takeLosses returns the losses that were not reported to the session yet, in their present
// state.
func (e *Engine) takeLosses(s *store.Session) []store.Loss {
	losses := s.Losses[:0]
	for _, l := range s.Losses {
		r := s.NS.Request(l.Lease.ID)
		if r != nil {
			r.Listed = false
			switch {
			case l.Code == "" && r.IsOver(): // it was asked for, and released
				continue
			case r.IsOver():
				l.Lease.State, l.Lease.EndedBy = interlock.Ended, r.Reason.String()
				l.Lease.ExpiresIn, l.Lease.MaxHoldIn, l.Lease.StallIn, l.Lease.Yield = 0, 0, 0, nil
				l.Code, l.Message = endedCode(r), r.Ending(nil)
			case r.Phase == store.InGrace:
				l = store.Loss{Lease: r.Lease(), Code: endedCode(r), Message: r.Ending(nil)}
			case r.Asker() != nil && r.Session() == s:
				l = store.Loss{Lease: r.Lease(), Message: r.YieldWords()}
			default: // the requesting caller has left
				continue
			}
			l.Lease.Notes = nil
		}
		losses = append(losses, l)
	}
	s.Losses = nil
	return losses
}

// needSession is caller for commands that make no sense without a session.
func (e *Engine) needSession() (*store.Session, bool) {
	s, ok := e.caller()
	if ok && s == nil {
		e.refuse(interlock.CodeUnknownSession, message.New(message.SessionNeeded))
		return nil, false
	}
	return s, ok
}

// beat renews a session. The session's timer stays: when it fires it looks at
// s.renewed and is set anew, so a heartbeat costs the same however many leases
// the session has.
func (e *Engine) beat(s *store.Session, progress string) {
	s.Renewed, s.Spared = e.Clock, false
	s.Report(progress)
}

// appendSoft adds the leases of s that come near their max_hold or their stall, and notes when
// it is worth to look again. If there are very many it looks at a swath, and the next heartbeat
// continues with the next one.
func (e *Engine) appendSoft(list []store.Loss, s *store.Session) []store.Loss {
	x := &s.Softly
	if x.Part == 0 {
		s.SoftAt = record.Never
	}
	for n, more := 0, true; more; {
		more = e.gatherLeases(x, s)
		for _, l := range x.Leases {
			r := l.Req
			if r.Phase == store.Held {
				s.SoftAt = min(s.SoftAt, r.TimedSoft())
			}
			if r.LeaseState() == interlock.Soft && len(list) < store.MaxLosses {
				list = append(list, store.Loss{Lease: r.Lease()})
			}
		}
		if n += len(x.Leases); more && (n >= store.Swath || e.full()) {
			return list
		}
	}
	s.TimedAt, s.Softly = s.SoftAt, store.Sweep{}
	return list
}

func (c *Attach) decide(e *Engine) {
	s, ok := e.needSession()
	if !ok {
		return
	}
	e.knowAll(s)
	e.beat(s, "")
	s.Caller, s.Link = c.From, c.Link
	losses := e.takeLosses(s)
	eff := e.reply(Done)
	eff.Session, eff.Losses = e.show(s), losses
}

// decide renews the session of a call that waits.
func (c *KeepAlive) decide(e *Engine) {
	eff := e.reply(Done)
	space := e.PendingWork.NS
	if space == nil {
		return
	}
	s := space.Sessions[c.Session]
	if c.Session.IsZero() {
		if r := space.Live(c.Ticket); r != nil && r.Phase == store.Waiting {
			s = r.Session()
		}
	}
	if s != nil && !s.Dead {
		e.beat(s, "")
		eff.Session.TTL = s.TTL
	}
}

func (c *Detach) decide(e *Engine) {
	space := e.PendingWork.NS
	if space == nil {
		return
	}
	c.detachTasks(e, space)
	if !c.Ticket.IsZero() {
		if r := space.Live(c.Ticket); r != nil && r.Phase == store.Waiting {
			e.unlisten(r, c.Link)
		} else if r != nil {
			r.StopListening(c.Link)
		}
		return
	}
	s := space.Sessions[c.Session]
	if s == nil {
		return
	}
	if s.Link == c.Link {
		s.Caller = nil
	}
	s.Detachments = append(s.Detachments, &store.Detachment{Link: c.Link, Until: e.listens})
	e.Parting.Push(s)
	e.part()
}

// part continues the first of the partings.
func (e *Engine) part() {
	s := e.Parting.At(0)
	x := s.Detachments[0]
	for !e.full() {
		f, done := e.nextWaiting(&x.Lines, s)
		if f == nil {
			if !done {
				return
			}
			s.Detachments = s.Detachments[1:]
			e.Parting.Pop()
			return
		}
		if x.Left == 0 || x.Left > len(f.Waits) {
			x.Left = len(f.Waits)
		}
		list := slices.Clone(f.Waits[max(0, x.Left-e.Swath):x.Left]) // runs leave
		if x.Left -= len(list); x.Left == 0 {
			x.Lines.Lines = x.Lines.Lines[1:]
		}
		e.Visited += len(list)
		for _, r := range list {
			if r = r.Whole(); r.Phase == store.Waiting && x.Has(r.Wait) {
				e.unlisten(r, x.Link)
			}
		}
	}
}

func (c *CloseSession) decide(e *Engine) {
	if e.PendingWork.NS.IsClosed(c.Session) {
		e.reply(Done)
		return
	}
	s, ok := e.needSession()
	if !ok {
		return
	}
	e.endSession(s, record.BySession)
	e.reply(Done)
}

// endSession ends a session; reap ends its waits and leases.
func (e *Engine) endSession(s *store.Session, why record.Reason) {
	*e.draft() = record.Event{Kind: record.SessionEnded, Namespace: s.NS.Name, Session: s.Num, Agent: s.Agent, Reason: why}
	e.Hint.Sess = s
	if why == record.BySession {
		e.ev.Actor = e.head.Actor
	}
	if s.Work > 0 || len(s.Awaiting) > 0 {
		e.expireSession(s)
	}
	e.emit(e.ev)
	e.Departed.Push(s)
	e.endListeners()
}

// endListeners ends the pulls of sessions that are over, and their waits for the ends of tasks, as
// far as the step may. Until that is done, nothing is handed out.
func (e *Engine) endListeners() {
	for e.Departed.Len() > 0 {
		if s := e.Departed.At(0); !e.endPulls(s) || !e.endFollows(s) {
			return
		}
		e.Departed.Pop()
	}
}

// expireSession has a session's leases and waits ended by reap.
func (e *Engine) expireSession(s *store.Session) {
	if !s.Dying {
		s.Dying, s.Sweeping, s.WaitsSwept, s.Aging = true, store.Sweep{}, false, nil
		e.Dying.Push(s)
	}
}

// sweepEnded ends waits and leases of an ended session: those of a closed one at once,
// those of one that died after their grace.
func (e *Engine) sweepEnded() {
	s := e.Dying.At(0)
	if !e.endAwaiting(s) {
		return
	}
	x := &s.Sweeping
	for !s.WaitsSwept {
		if e.full() {
			return
		}
		if f, done := e.nextWaiting(x, s); f != nil {
			i := 0
			if len(f.Waits) > e.Swath { // those behind it would move up
				i = len(f.Waits) - 1
			}
			e.leaveLine(f.Waits[i].Whole(), s.Why)
		} else if done {
			s.Sweeping, s.WaitsSwept = store.Sweep{}, true
		}
	}
	for {
		r, done := e.nextLease(x, s)
		if done {
			break
		}
		if r == nil || e.full() {
			return
		}
		x.Passed()
		e.sweepLease(s, r)
	}
	s.Dying, s.Sweeping = false, store.Sweep{}
	e.Dying.Pop()
}

// sweepLease ends a lease of an ended session, or passes its hard end.
func (e *Engine) sweepLease(s *store.Session, r *store.Request) {
	switch {
	case r.HoldsOn():
	case s.Why == record.ByDeath && r.Phase == store.Held:
		e.hard(r, record.ByDeath)
	case s.Why == record.ByDeath && r.Phase == store.InGrace:
	default:
		e.end(r, s.Why)
	}
}

func (c *OpenSession) again(e *Engine, a *store.StoredAnswer) {
	if s, ok := e.living(a.ID); ok {
		e.reply(Done).Session = e.show(s)
	}
}
