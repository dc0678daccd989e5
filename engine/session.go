package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// caller returns the session that issues the command, nil for none. If it is not alive, the
// command is refused and ok is false.
func (e *Engine) caller() (sess *session, ok bool) {
	if e.head.Session.IsZero() {
		return nil, true
	}
	return e.living(e.head.Session)
}

// living returns a session that has not ended. If it has, or never was, the command
// is refused and ok is false.
func (e *Engine) living(id interlock.SessionID) (sess *session, ok bool) {
	if sess = e.alive(id); sess != nil {
		return sess, true
	}
	space := e.pendingWork.ns
	if space != nil {
		why, ended := space.endReasons[id]
		if s := space.sessions[id]; s != nil {
			why, ended = s.why, true
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
func (e *Engine) alive(id interlock.SessionID) *session {
	space := e.pendingWork.ns
	if space == nil {
		return nil
	}
	s := space.sessions[id]
	if s == nil {
		return nil
	}
	if e.endOverdue(s); s.dead {
		return nil
	}
	return s
}

// endOverdue ends what of a session is due by now and was not reached yet.
func (e *Engine) endOverdue(s *session) {
	if s.timer.pos >= 0 && s.timer.at <= e.now {
		e.fire(&s.timer)
	}
}

func (c *OpenSession) decide(e *Engine) {
	if problem := checkNamespace(c.Namespace); problem != nil {
		e.refuse(interlock.CodeInvalidNamespace, problem)
		return
	}
	if code, problem := checkTexts(text{"agent", c.Agent, interlock.MaxNameBytes}); code != "" {
		e.refuse(code, problem)
		return
	}
	ttl := c.TTL
	if ttl == 0 {
		ttl = interlock.DefaultTTL
	}
	if ttl < interlock.MinTTL || ttl > interlock.MaxTTL {
		e.refuse(interlock.CodeInvalidTTL, message.New(message.NotBetween, message.Str("ttl"), message.Dur(ttl), message.Dur(interlock.MinTTL), message.Dur(interlock.MaxTTL)))
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
	space := e.ns(c.Namespace)
	if space.sessions[c.ID] != nil {
		e.refuseFor(idTaken("session"))
		return
	}
	if problem := space.tooManySessions(c.Actor); problem != nil {
		e.refuse(interlock.CodeTooManySessions, problem)
		return
	}
	*e.draft() = record.Event{
		Kind: record.SessionOpened, Namespace: c.Namespace, Session: e.snum + 1, ID: c.ID, Agent: c.Agent, Terms: interlock.Terms{TTL: ttl}, Actor: c.Actor,
	}
	e.tag(e.ev, Done)
	e.emit(e.ev)
	s := space.sessions[c.ID]
	e.timers.set(&s.timer, e.now.Add(softAt(ttl)))
	e.reply(Done).Session = e.show(s)
}

// end is when the session ends if nothing is heard of it.
func (s *session) end() Time {
	end := s.renewed.Add(s.ttl)
	if s.spared {
		end = end.Add(spread(s.num, s.ttl))
	}
	return end
}

// show describes a session to its client.
func (e *Engine) show(s *session) Session {
	return Session{ID: s.id, Name: s.name, Agent: s.agent, TTL: s.ttl, ExpiresIn: max(0, s.end().Sub(e.now))}
}

func (c *Heartbeat) decide(e *Engine) {
	if code, problem := checkTexts(text{"progress", c.Progress, interlock.MaxProgressBytes}); code != "" {
		e.refuse(code, problem)
		return
	}
	s, ok := e.needSession()
	if !ok {
		return
	}
	losses := e.takeLosses(s)
	e.beat(s, c.Progress)
	if s.timed > 0 && e.now >= s.timedAt {
		losses = e.appendSoft(losses, s)
	}
	eff := e.reply(Done)
	eff.Session, eff.Losses = e.show(s), losses
}

// takeLosses returns the losses that were not reported to the session yet, in their present
// state.
func (e *Engine) takeLosses(s *session) []Loss {
	losses := s.losses[:0]
	for _, l := range s.losses {
		r := s.ns.request(l.Lease.ID)
		if r != nil {
			r.listed = false
			switch {
			case l.Code == "" && r.isOver(): // it was asked for, and released
				continue
			case r.isOver():
				l.Lease.State, l.Lease.EndedBy = interlock.Ended, r.reason.String()
				l.Lease.ExpiresIn, l.Lease.MaxHoldIn, l.Lease.StallIn, l.Lease.Yield = 0, 0, 0, nil
				l.Code, l.Message = endedCode(r), r.ending(nil)
			case r.phase == inGrace:
				l = Loss{e.lease(r), endedCode(r), r.ending(nil)}
			case r.asker() != nil && r.session() == s:
				l = Loss{Lease: e.lease(r), Message: r.yieldWords()}
			default: // the requesting caller has left
				continue
			}
			l.Lease.Notes = nil
		}
		losses = append(losses, l)
	}
	s.losses = nil
	return losses
}

// needSession is caller for commands that make no sense without a session.
func (e *Engine) needSession() (*session, bool) {
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
func (e *Engine) beat(s *session, progress string) {
	s.renewed, s.spared = e.now, false
	e.report(s, progress)
}

// appendSoft adds the leases of s that come near their max_hold or their stall, and notes when
// it is worth to look again. If there are very many it looks at a swath, and the next heartbeat
// continues with the next one.
func (e *Engine) appendSoft(list []Loss, s *session) []Loss {
	x := &s.softly
	if x.part == 0 {
		s.softAt = record.Never
	}
	for n, more := 0, true; more; {
		more = e.gatherLeases(x, s)
		for _, l := range x.leases {
			r := l.req
			if r.phase == held {
				s.softAt = min(s.softAt, e.timedSoft(r))
			}
			if e.stateOf(r) == interlock.Soft && len(list) < maxLosses {
				list = append(list, Loss{Lease: e.lease(r)})
			}
		}
		if n += len(x.leases); more && (n >= swath || e.full()) {
			return list
		}
	}
	s.timedAt, s.softly = s.softAt, sweep{}
	return list
}

func (c *Attach) decide(e *Engine) {
	s, ok := e.needSession()
	if !ok {
		return
	}
	e.beat(s, "")
	s.caller, s.link = c.From, c.Link
	losses := e.takeLosses(s)
	eff := e.reply(Done)
	eff.Session, eff.Losses = e.show(s), losses
}

// decide renews the session of a call that waits.
func (c *KeepAlive) decide(e *Engine) {
	eff := e.reply(Done)
	space := e.pendingWork.ns
	if space == nil {
		return
	}
	s := space.sessions[c.Session]
	if c.Session.IsZero() {
		if r := space.live(c.Ticket); r != nil && r.phase == waiting {
			s = r.session()
		}
	}
	if s != nil && !s.dead {
		e.beat(s, "")
		eff.Session.TTL = s.ttl
	}
}

func (c *Detach) decide(e *Engine) {
	space := e.pendingWork.ns
	if space == nil {
		return
	}
	e.detachTasks(space, c)
	if !c.Ticket.IsZero() {
		if r := space.live(c.Ticket); r != nil && r.phase == waiting {
			e.unlisten(r, c.Link)
		} else if r != nil {
			r.unhear(c.Link)
		}
		return
	}
	s := space.sessions[c.Session]
	if s == nil {
		return
	}
	if s.link == c.Link {
		s.caller = nil
	}
	s.detachments = append(s.detachments, &detachment{link: c.Link, until: e.listens})
	e.parting.Push(s)
	e.part()
}

// detachment is a connection that has ended with very many attached waits of a session: they
// are detached over several steps. Until then request.listener treats them as unattended.
type detachment struct {
	link  uint64
	until uint64 // Engine.listens when it ended: later waits are attached over its successor
	lines sweep
	left  int // waits of a large flow that are left
}

// part continues the first of the partings.
func (e *Engine) part() {
	s := e.parting.At(0)
	x := s.detachments[0]
	for !e.full() {
		f, done := e.nextWaiting(&x.lines, s)
		if f == nil {
			if !done {
				return
			}
			s.detachments = s.detachments[1:]
			e.parting.Pop()
			return
		}
		if x.left == 0 || x.left > len(f.waits) {
			x.left = len(f.waits)
		}
		list := slices.Clone(f.waits[max(0, x.left-e.swath):x.left]) // runs leave
		if x.left -= len(list); x.left == 0 {
			x.lines.lines = x.lines.lines[1:]
		}
		e.objects += len(list)
		for _, r := range list {
			if r = r.whole(); r.phase == waiting && x.has(r.wait) {
				e.unlisten(r, x.link)
			}
		}
	}
}

// isParting reports whether the caller of a wait began to listen over a connection that has
// ended since.
func (s *session) isParting(w *wait) bool {
	return s != nil && slices.ContainsFunc(s.detachments, func(x *detachment) bool { return x.has(w) })
}

func (x *detachment) has(w *wait) bool { return w.link == x.link && w.since <= x.until }

// listener returns the caller that listens to a waiting request, nil for none.
func (r *request) listener() Caller {
	if w := r.wait; w.caller != nil && !r.session().isParting(w) {
		return w.caller
	}
	return nil
}

func (c *CloseSession) decide(e *Engine) {
	if e.pendingWork.ns.isClosed(c.Session) {
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

// isClosed reports whether a session was closed, be it that some of its leases and waits are
// still to end.
func (s *namespace) isClosed(id interlock.SessionID) bool {
	if s == nil {
		return false
	}
	if x := s.sessions[id]; x != nil {
		return x.dead && x.why == record.BySession
	}
	return s.endReasons[id] == record.BySession
}

// endSession ends a session; reap ends its waits and leases.
func (e *Engine) endSession(s *session, why record.Reason) {
	*e.draft() = record.Event{Kind: record.SessionEnded, Namespace: s.ns.name, Session: s.num, Agent: s.agent, Reason: why}
	e.hint.sess = s
	if why == record.BySession {
		e.ev.Actor = e.head.Actor
	}
	if s.work > 0 || len(s.awaiting) > 0 {
		e.expireSession(s)
	}
	e.emit(e.ev)
	e.departed.Push(s)
	e.endListeners()
}

// endListeners ends the pulls of sessions that are over, and their waits for the ends of tasks, as
// far as the step may. Until that is done, nothing is handed out.
func (e *Engine) endListeners() {
	for e.departed.Len() > 0 {
		if s := e.departed.At(0); !e.endPulls(s) || !e.endFollows(s) {
			return
		}
		e.departed.Pop()
	}
}

// expireSession has a session's leases and waits ended by reap.
func (e *Engine) expireSession(s *session) {
	if !s.dying {
		s.dying, s.sweeping, s.waitsSwept, s.aging = true, sweep{}, false, nil
		e.dying.Push(s)
	}
}

// sweepEnded ends waits and leases of an ended session: those of a closed one at once,
// those of one that died after their grace.
func (e *Engine) sweepEnded() {
	s := e.dying.At(0)
	if !e.endAwaiting(s) {
		return
	}
	x := &s.sweeping
	for !s.waitsSwept {
		if e.full() {
			return
		}
		if f, done := e.nextWaiting(x, s); f != nil {
			i := 0
			if len(f.waits) > e.swath { // those behind it would move up
				i = len(f.waits) - 1
			}
			e.leaveLine(f.waits[i].whole(), s.why)
		} else if done {
			s.sweeping, s.waitsSwept = sweep{}, true
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
		x.passed()
		e.sweepLease(s, r)
	}
	s.dying, s.sweeping = false, sweep{}
	e.dying.Pop()
}

// sweepLease ends a lease of an ended session, or passes its hard end.
func (e *Engine) sweepLease(s *session, r *request) {
	switch {
	case r.holdsOn():
	case s.why == record.ByDeath && r.phase == held:
		e.hard(r, record.ByDeath)
	case s.why == record.ByDeath && r.phase == inGrace:
	default:
		e.end(r, s.why)
	}
}

// idleFlows is how many flows a session keeps that have neither a lease nor a wait.
const idleFlows = 1024

// rest notes that a flow has nothing, for dropIdleFlows.
func (s *session) rest(f *flowState) {
	if !f.resting {
		f.resting = true
		s.resting.Push(f)
	}
}

// dropIdleFlows forgets empty flows, if there are many. Each new flow checks two of them, so
// their number does not grow however many names an agent uses.
func (s *session) dropIdleFlows() {
	for range 2 {
		if s.resting.Len() < idleFlows {
			return
		}
		f := s.resting.Pop()
		f.resting = false
		if f.isIdle() {
			s.flows.Remove(f)
		}
	}
}

// isIdle reports whether the flow neither holds nor waits.
func (p *flowState) isIdle() bool { return len(p.leases) == 0 && len(p.waits) == 0 }

// stand keeps the session's list of flows that wait.
func (p *flowState) stand() {
	waits := len(p.waits) > 0
	if waits == p.waiting {
		return
	}
	p.waiting = waits
	s := p.sess
	i, _ := slices.BinarySearchFunc(s.waiting, p.name, byFlowName)
	if waits {
		s.waiting = slices.Insert(s.waiting, i, p)
	} else {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
}

func byFlowName(p *flowState, name string) int { return strings.Compare(p.name, name) }

func (e *State) sorted() []*namespace {
	return slices.SortedFunc(maps.Values(e.spaces), func(a, b *namespace) int { return strings.Compare(string(a.name), string(b.name)) })
}

func (s *namespace) sortedSessions() []*session {
	return slices.SortedFunc(maps.Values(s.sessions), func(a, b *session) int { return cmp.Compare(a.num, b.num) })
}

func (s *namespace) sortedNodes() []*node {
	list := s.nodes.All()
	slices.SortFunc(list, func(a, b *node) int { return strings.Compare(a.key, b.key) })
	return list
}

// minTerm notes that r lives by the session's heartbeats.
func (e *Engine) minTerm(s *session, r *request) {
	s.minTTL, s.least = min(s.minTTL, r.TTL), min(s.least, r.TTL)
	if at := r.beat().Add(softAt(r.TTL)); s.timer.pos >= 0 && at < s.timer.at {
		e.timers.set(&s.timer, at)
	}
}

func (c *OpenSession) again(e *Engine, a *storedAnswer) {
	if s, ok := e.living(a.id); ok {
		e.reply(Done).Session = e.show(s)
	}
}
