package engine

import (
	"errors"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/record"
)

// rememberedSessions is how many sessions that are over a namespace remembers.
const rememberedSessions = 16_384

var errUnknown = errors.New("engine: event is about something that does not exist")

// evolve folds one event into the state. It decides nothing: the same events
// give the same state in every version. It fails only on events that no engine
// can have emitted in this state.
func (e *State) evolve(ev *record.Event) error {
	var err error
	e.last = max(e.last, ev.At)
	switch ev.Kind {
	case record.Opened:
		e.epoch, e.fence, e.base = ev.Epoch, max(e.fence, ev.Fence), max(e.base, ev.Version)
		e.pauseQuestions(ev.At, ev.Idle)
	case record.SessionOpened:
		err = e.evolveSession(ev)
	case record.SessionEnded:
		s := e.sessionOf(ev)
		if s == nil {
			return errUnknown
		}
		if !s.dead {
			s.ns.roll.remove(s)
			s.ns.lingering++
			s.ns.count(s.owner, usage{sessions: -1})
			s.ns.kept.drop(createdObject{madeSession, s.id})
		}
		s.dead, s.why = true, ev.Reason
		e.forgetSession(s)
	case record.Queued, record.Granted:
		err = e.evolveRequest(ev)
	case record.Admitted, record.Claimed, record.YieldRequested, record.Parked, record.Resumed, record.Decided, record.KeysMoved, record.Grace, record.Closed, record.Ended, record.Left, record.Converted, record.Tombstone:
		err = e.evolveProgress(ev)
	case record.EffectChanged:
		err = e.ns(ev.Namespace).evolveDeed(ev)
	case record.EffectsForgotten:
		err = e.ns(ev.Namespace).evolveDeedsForgotten(ev)
	case record.QueueSet, record.QueueDropped:
		err = e.evolveQueue(ev)
	case record.TaskSubmitted:
		err = e.evolveTask(ev)
	case record.TaskDispatched:
		err = e.evolveHanded(ev)
	case record.AttemptFailed:
		err = e.evolveAttempt(ev)
	case record.TaskMoved:
		err = e.evolveStands(ev)
	case record.ApprovalRequested:
		err = e.evolveAsks(ev)
	case record.ApprovalDecided:
		err = e.evolveAnswered(ev)
	case record.TaskForgotten:
		err = e.ns(ev.Namespace).evolveForgotten(ev)
	case record.Answered, record.Refused: // the first is remembered below, the second is there to be read
	case record.Counters:
		e.num, e.snum, e.fence, e.epoch = ev.Num, ev.Session, ev.Fence, ev.Epoch
		e.writes, e.base, e.past = ev.Writes, ev.Version, uint64(ev.AsOf)
		return nil
	case record.Noted:
		if len(ev.Claims) != 1 {
			return errUnknown
		}
		e.ns(ev.Namespace).leaveNote(string(ev.Claims[0].Key), note{ev.At, ev.Agent, ev.Fence, ev.Outcome, ev.Note})
		return nil
	case record.SessionGone:
		s := e.ns(ev.Namespace)
		s.endedSessions.Push(endedSession{ev.ID, ev.Reason})
		s.endReasons[ev.ID] = ev.Reason
		return nil
	case record.PatternSet, record.PatternDropped:
		err = e.evolvePattern(ev)
	case record.Configured:
		err = e.ns(ev.Namespace).evolveSettings(ev)
	case record.Written:
		err = e.ns(ev.Namespace).evolveWritten(ev)
	case record.Versions:
		space := e.ns(ev.Namespace)
		s := &space.docs
		s.version, s.floor, space.born = max(s.version, ev.Version), max(s.floor, ev.AsOf), ev.Num
		return nil
	case record.NamespaceDeleted, record.NamespaceForgotten:
		err = e.evolveGone(ev)
	case record.Logged:
		return e.ns(ev.Namespace).evolveLogged(ev)
	case record.Bucket:
		return e.ns(ev.Namespace).evolveBucket(ev)
	case record.Divided:
		return e.ns(ev.Namespace).readDivision(ev)
	case record.HoldTime:
		e.ns(ev.Namespace).holds[ev.KeyClass] = ev.Held
		return nil
	default:
		return record.ErrNewer
	}
	if err == nil && ev.Answer != 0 {
		e.evolveAnswer(ev)
	}
	return err
}

func (e *State) sessionOf(ev *record.Event) *session {
	if e.hint.sess != nil {
		return e.hint.sess
	}
	return e.numbered(ev.Namespace, ev.Session)
}

// numbered returns the session of a namespace with a number, or nil.
func (e *State) numbered(name interlock.Namespace, num uint64) *session {
	s := e.pendingWork.ns
	if s == nil || s.name != name {
		s = e.spaces[name]
	}
	if s == nil {
		return nil
	}
	return s.byNum[num]
}

func (e *State) evolveSession(ev *record.Event) error {
	if e.numbered(ev.Namespace, ev.Session) != nil || ev.Session == 0 {
		return fmt.Errorf("engine: session %d is opened twice", ev.Session)
	}
	id := interlock.SessionID(ev.ID)
	s := &session{
		num: ev.Session, id: id, ns: e.ns(ev.Namespace), agent: ev.Agent, name: publicName(id),
		ttl: ev.TTL, opened: ev.At, renewed: ev.At, minTTL: ev.TTL,
	}
	s.ns.season(ev.ID)
	s.timer = timer{pos: -1, ord: s.num<<1 | 1, sess: s}
	s.seqs.floor = ev.Acked
	s.owner = ev.Actor
	s.ns.count(s.owner, usage{sessions: 1})
	s.ns.sessions[id] = s
	s.ns.roll.add(s)
	s.ns.byNum[s.num] = s
	e.snum = max(e.snum, s.num)
	return nil
}

// forgetSession drops an ended session when nothing of it is left, once.
func (e *State) forgetSession(s *session) {
	if !s.dead || s.work > 0 || len(s.awaiting) > 0 || s.ns.byNum[s.num] != s {
		return
	}
	e.timers.clear(&s.timer)
	s.ns.lingering--
	delete(s.ns.sessions, s.id)
	s.ns.kept.leave(&s.ids)
	delete(s.ns.byNum, s.num)
	s.ns.endedSessions.Push(endedSession{s.id, s.why})
	s.ns.endReasons[s.id] = s.why
	if s.ns.endedSessions.Len() > rememberedSessions {
		delete(s.ns.endReasons, s.ns.endedSessions.At(0).id)
		s.ns.endedSessions.Pop()
	}
}

// flow finds or makes a flow of the session.
func (s *session) flow(name string) *flowState {
	hash := s.ns.salt.Hash(name)
	if f := s.flowOf(name, hash); f != nil {
		return f
	}
	s.dropIdleFlows()
	f := &flowState{sess: s, name: name, hashed: hash}
	s.flows.Add(f)
	s.rest(f)
	return f
}

// flowOf returns a flow of the session, or nil.
func (s *session) flowOf(name string, hash uint32) *flowState {
	for f := s.flows.First(hash); f != nil; f = *f.TableNext() {
		if f.Hash() == hash && f.name == name {
			return f
		}
	}
	return nil
}

// request makes the request that an event of kind record.Queued or record.Granted tells of.
func (e *State) request(ev *record.Event) (*request, error) {
	r := e.newRequest()
	r.id, r.num = ev.ID, ev.Num
	r.terms = e.ns(ev.Namespace).agree(ev.Terms)
	if ev.Session != 0 {
		s := e.numbered(ev.Namespace, ev.Session)
		if s == nil || s.ns != r.ns {
			return nil, errUnknown
		}
		r.join(s.flow(ev.Flow))
	} else {
		r.mutableExt().guest = &anonymousCaller{ev.Agent, ev.Actor}
	}
	r.priority, r.lead, r.any = int8(ev.Priority), ev.Lead, ev.Any
	r.setDetails(requestDetail{purpose: ev.Purpose, trace: ev.Trace, window: window{ev.AsOf, ev.Version}, documents: ev.Op&wantsDocuments != 0})
	r.setClaims(ev.Claims)
	switch of, err := record.DecodeRun(ev.Blob); {
	case err != nil:
		return nil, err
	case of != (record.Run{}):
		r.mutableExt().run = &record.Run{Org: of.Org, Workflow: of.Workflow}
	}
	if ev.Part {
		if err := r.belongs(ev); err != nil {
			return nil, err
		}
	} else if ev.Base != 0 {
		if err := r.converts(ev); err != nil {
			return nil, err
		}
	}
	if ev.Target != 0 {
		b := r.mutableExt()
		b.target, b.targetFlow = r.ns.byNum[ev.Target], ev.TargetFlow
		if r.target == nil || r.target.ns != r.ns || ev.Kind != record.Queued || len(ev.Claims) > 0 {
			return nil, errUnknown
		}
	}
	e.resolve(r)
	return r, nil
}

func (e *State) newRequest() *request {
	if n := len(e.free); n > 0 {
		r := e.free[n-1]
		e.free = e.free[:n-1]
		return r
	}
	return &request{terms: noTerms, requestDetail: noDetails, requestExt: noExt}
}

// maxFree bounds the objects that are kept for reuse, of each kind.
const maxFree = 4096

// discard frees a request's memory.
func (e *State) discard(r *request) {
	e.dropAlternatives(r)
	r.unneed()
	*r = request{more: r.more, terms: noTerms, requestDetail: noDetails, requestExt: noExt}
	r.setClaims(nil)
	if len(e.free) < maxFree {
		e.free = append(e.free, r)
	}
}

func (e *State) evolveRequest(ev *record.Event) error {
	r := e.hint.req
	if r == nil {
		if e.ns(ev.Namespace).knows(ev.ID) || len(ev.Claims) == 0 && ev.Target == 0 && ev.Kind == record.Queued || ev.Any && ev.Kind != record.Queued {
			return fmt.Errorf("engine: request %d is made twice, or claims nothing", ev.Num)
		}
		var err error
		if r, err = e.request(ev); err != nil {
			return err
		}
	}
	r.ns.requests.Add(r)
	r.num = ev.Num
	e.num = max(e.num, r.num)
	r.granted, r.renewed, r.changed = ev.At, ev.At, ev.Changed
	if ev.Queued {
		r.deal().arrived = ev.At.Add(-ev.Arrived)
	}
	if ev.Kind == record.Granted {
		r.fence, r.phase, r.waited = ev.Fence, held, ev.Waited
		r.setGeneration(ev.Generation)
		if ev.Offer {
			r.phase = offered
		}
		e.fence = max(e.fence, ev.Fence)
		if ev.Freed {
			r.goAway()
			r.expectBack()
			r.deal().parking = &parkState{since: ev.At, until: ev.At} // record.Parked comes next, and has the details
			return nil
		}
		r.hold()
		r.spend(ev.At)
		r.observe()
		return nil
	}
	r.phase = waiting
	r.wait = e.newWait()
	r.setScore()
	r.shareKeys()
	e.enqueue(r)
	if r.base != nil {
		r.base.mutableExt().conversion = r
	}
	if r.target != nil {
		r.await()
	}
	return nil
}

// evolveProgress folds the later events of a request.
func (e *State) evolveProgress(ev *record.Event) error {
	r := e.hint.req
	if r == nil {
		if r = e.ns(ev.Namespace).live(ev.ID); r == nil && ev.Kind != record.Tombstone {
			return errUnknown
		}
	}
	switch ev.Kind {
	case record.Admitted:
		if r.phase != waiting {
			return errUnknown
		}
		way := r.wayTo(ev.Claims)
		if way == nil {
			return errUnknown
		}
		if r.base != nil {
			return e.evolveConversion(ev, r)
		}
		r.changed = r.sawWrites()
		if d := r.dealings; d != nil && d.arrived != 0 {
			d.moved = r.movedKeys(r.wait.writes)
		}
		r.unline()
		for other := range r.eachAlternative {
			if other != way {
				e.changed(other)
			}
		}
		e.chooseAlternative(r, way)
		r.setGeneration(ev.Generation)
		r.unask()
		e.dropWait(r)
		r.fence, r.granted, r.renewed, r.waited, r.phase = ev.Fence, ev.At, ev.At, ev.Waited, held
		if ev.Offer {
			r.phase = offered
		}
		e.fence = max(e.fence, ev.Fence)
		r.handOver(r, ev.Version)
		r.hold()
		r.spend(ev.At)
		r.observe()
	case record.Converted:
		if r.phase != held || len(ev.Claims) == 0 {
			return errUnknown
		}
		r.handOver(r, 0)
		e.changeClaims(r, ev, false)
	case record.Claimed:
		if r.phase != offered {
			return errUnknown
		}
		r.waited += ev.At.Sub(r.granted) // so that it is known when it arrived
		r.phase, r.granted, r.renewed, r.spared = held, ev.At, ev.At, false
		r.handOver(r, ev.Version)
		r.memberChanged()
	case record.YieldRequested:
		return r.evolveAsked(ev)
	case record.Parked:
		return e.evolveParked(ev, r)
	case record.Decided:
		return r.evolveDecided(ev)
	case record.Resumed:
		return e.evolveResumed(ev, r)
	case record.KeysMoved:
		r.deal().moved = nil
		for _, c := range ev.Claims {
			r.dealings.moved = append(r.dealings.moved, c.Key)
		}
	case record.Grace:
		if r.phase != held {
			return errUnknown
		}
		r.phase, r.reason, r.renewed = inGrace, ev.Reason, ev.At
		r.setEndCause(endingOf(ev))
	case record.Closed:
		if r.phase != held && r.phase != inGrace || r.LockDelay == 0 {
			return errUnknown
		}
		e.evolveClosed(ev, r)
	case record.Ended:
		if r.phase == waiting && !r.goesBack() || r.phase == over {
			return errUnknown
		}
		e.evolveEnd(ev, r)
	case record.Left:
		if r.phase != waiting {
			return errUnknown
		}
		r.unline()
		e.changed(r)
		if r.base != nil {
			r.base.mutableExt().conversion = nil
		}
		target := r.target
		if target != nil {
			r.unawait()
		}
		r.setEndCause(endingOf(ev))
		e.archive(r, ev.Reason)
		if target != nil {
			e.forgetSession(target)
		}
	case record.Tombstone:
		s := e.ns(ev.Namespace)
		if s.knows(ev.ID) || len(ev.Claims) == 0 && ev.Fence != 0 && ev.ByID == [16]byte{} {
			return errUnknown
		}
		s.tombs.push(collection.HashID(ev.ID), tombstone{id: ev.ID, num: ev.Num, fence: ev.Fence, claims: ev.Claims, endCause: endingOf(ev), reason: ev.Reason})
	}
	return nil
}

// endingOf returns the cause of an end that later answers report: the cycle of a deadlock, the
// revoking principal and the reason, the preempting request, and the task that the lease was an
// attempt at.
func endingOf(ev *record.Event) *endCause {
	end := causeOf(ev)
	if ev.ByID != [16]byte{} {
		if end == nil {
			end = &endCause{}
		}
		end.task = ev.ByID
	}
	return end
}

func causeOf(ev *record.Event) *endCause {
	switch {
	case len(ev.Cycle) > 0:
		return &endCause{cycle: ev.Cycle}
	case ev.Reason == record.ByRevocation:
		return &endCause{actor: ev.Actor, words: ev.Outcome}
	case ev.Reason == record.ByPreemption:
		return &endCause{actor: ev.Actor, asker: ev.Asker}
	case ev.Reason == record.ByBreak && ev.Outcome != "":
		return &endCause{asker: ev.Asker, words: ev.Outcome}
	case (ev.Reason == record.ByConversion || ev.Reason == record.ByBase) && !ev.Part:
		return &endCause{base: ev.Base, baseID: ev.BaseID}
	}
	return nil
}

func (e *State) evolveEnd(ev *record.Event, r *request) {
	r.setEndCause(endingOf(ev))
	if r.isParked() {
		e.endParking(r)
	}
	switch r.phase {
	case away:
	case waiting: // to be resumed
		r.fence = ev.Fence
		r.unline()
		e.changed(r)
	default:
		e.giveBack(r)
	}
	if ev.Note != "" {
		for _, c := range r.claims() {
			r.ns.leaveNote(string(c.Key), note{ev.At, ev.Agent, r.fence, ev.Outcome, ev.Note})
		}
	}
	if r.share == nil && len(r.claims()) > 0 {
		r.ns.observe(r.claims()[0].Key, ev.Held)
	}
	e.archive(r, ev.Reason)
}

// giveBack releases the keys of r.
func (e *State) giveBack(r *request) {
	r.unhold()
	needs := r.needs()
	writes := false
	for i := range needs {
		m := &needs[i]
		writes = writes || m.claimed && m.counts == 0 && lockmode.Writing.Has(m.mode)
	}
	if writes {
		e.writes++
		for i := range needs {
			m := &needs[i]
			if l := m.node.line; l != nil && m.counts == 0 && lockmode.Writing.Has(m.mode) {
				l.wrote = e.writes
				if m.mode == lockmode.X {
					l.wroteAll = e.writes
				}
			}
		}
	}
	e.changed(r)
}

// sawWrites reports whether a possible writer held one of r's keys, in whole or in part, while
// r waited.
func (r *request) sawWrites() bool {
	if r.changed {
		return true
	}
	for way := range r.eachAlternative {
		for i := range way.needs() {
			l := way.needs()[i].node.line
			if l.wroteAll > r.wait.writes || way.needs()[i].claimed && l.wrote > r.wait.writes {
				return true
			}
		}
	}
	return false
}
