package store

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

// Evolve folds one event into the state. It decides nothing: the same events
// give the same state in every version. It fails only on events that no engine
// can have emitted in this state.
func (st *State) Evolve(ev *record.Event) error {
	var err error
	st.Last = max(st.Last, ev.At)
	switch ev.Kind {
	case record.Opened:
		st.Epoch, st.Fence, st.BaseVersion = ev.Epoch, max(st.Fence, ev.Fence), max(st.BaseVersion, ev.Version)
		st.pauseQuestions(ev.At, ev.Idle)
	case record.SessionOpened:
		err = st.evolveSession(ev)
	case record.SessionEnded:
		s := st.sessionOf(ev)
		if s == nil {
			return errUnknown
		}
		if !s.Dead {
			s.NS.Roll.remove(s)
			s.NS.Lingering++
			s.NS.count(s.Owner, usage{sessions: -1})
			s.NS.kept.drop(createdObject{MadeSession, s.ID})
		}
		s.Dead, s.Why = true, ev.Reason
		st.forgetSession(s)
	case record.Queued, record.Granted:
		err = st.evolveRequest(ev)
	case record.Admitted, record.Claimed, record.YieldRequested, record.Parked, record.Resumed, record.Decided,
		record.KeysMoved, record.Grace, record.Closed, record.Ended, record.Left, record.Converted, record.TTLChanged,
		record.Tombstone:
		err = st.evolveProgress(ev)
	case record.EffectChanged:
		err = st.Namespace(ev.Namespace).evolveEffect(ev)
	case record.EffectsForgotten:
		err = st.Namespace(ev.Namespace).evolveEffectsForgotten(ev)
	case record.QueueSet, record.QueueDropped:
		err = st.evolveQueue(ev)
	case record.WebhookSet, record.WebhookDeleted, record.WebhookRotated, record.WebhookDelivered:
		err = st.evolveWebhook(ev)
	case record.TaskSubmitted:
		err = st.evolveTask(ev)
	case record.TaskDispatched:
		err = st.evolveDispatched(ev)
	case record.AttemptFailed:
		err = st.evolveAttempt(ev)
	case record.TaskMoved:
		err = st.evolveTaskMoved(ev)
	case record.ApprovalRequested:
		err = st.evolveApprovalRequested(ev)
	case record.ApprovalDecided:
		err = st.evolveApprovalDecided(ev)
	case record.TaskForgotten:
		err = st.Namespace(ev.Namespace).evolveForgotten(ev)
	case record.Answered, record.Refused: // the first is remembered below, the second is there to be read
	case record.Counters:
		st.Num, st.SessionNum, st.Fence, st.Epoch = ev.Num, ev.Session, ev.Fence, ev.Epoch
		st.Writes, st.BaseVersion, st.PastVersion = ev.Writes, ev.Version, uint64(ev.AsOf)
		return nil
	case record.Noted:
		if len(ev.Claims) != 1 {
			return errUnknown
		}
		st.Namespace(ev.Namespace).leaveNote(string(ev.Claims[0].Key), note{ev.At, ev.Agent, ev.Fence, ev.Outcome, ev.Note})
		return nil
	case record.SessionGone:
		s := st.Namespace(ev.Namespace)
		s.EndedSessions.Push(endedSession{ev.ID, ev.Reason})
		s.EndReasons[ev.ID] = ev.Reason
		return nil
	case record.PatternSet, record.PatternDropped:
		err = st.evolvePattern(ev)
	case record.Configured:
		err = st.Namespace(ev.Namespace).evolveSettings(ev)
	case record.Written:
		err = st.Namespace(ev.Namespace).evolveWritten(ev)
	case record.Versions:
		space := st.Namespace(ev.Namespace)
		s := &space.Documents
		s.Version, s.Floor, space.Born = max(s.Version, ev.Version), max(s.Floor, ev.AsOf), ev.Num
		return nil
	case record.NamespaceDeleted, record.NamespaceForgotten:
		err = st.evolveNamespaceGone(ev)
	case record.NamespaceMoved:
		return st.evolveMoved(ev)
	case record.Logged:
		return st.Namespace(ev.Namespace).evolveLogged(ev)
	case record.Bucket:
		return st.Namespace(ev.Namespace).evolveBucket(ev)
	case record.Divided:
		return st.Namespace(ev.Namespace).readDivision(ev)
	case record.HoldTime:
		st.Namespace(ev.Namespace).Holds[ev.KeyClass] = ev.Held
		return nil
	default:
		return record.ErrNewer
	}
	if err == nil && ev.Answer != 0 {
		st.evolveAnswer(ev)
	}
	return err
}

func (st *State) sessionOf(ev *record.Event) *Session {
	if st.Hint.Sess != nil {
		return st.Hint.Sess
	}
	return st.numbered(ev.Namespace, ev.Session)
}

// numbered returns the session of a namespace with a number, or nil.
func (st *State) numbered(name interlock.Namespace, num uint64) *Session {
	s := st.PendingWork.NS
	if s == nil || s.Name != name {
		s = st.Namespaces[name]
	}
	if s == nil {
		return nil
	}
	return s.ByNum[num]
}

func (st *State) evolveSession(ev *record.Event) error {
	if st.numbered(ev.Namespace, ev.Session) != nil || ev.Session == 0 {
		return fmt.Errorf("engine: session %d is opened twice", ev.Session)
	}
	id := interlock.SessionID(ev.ID)
	s := &Session{
		Num: ev.Session, ID: id, NS: st.Namespace(ev.Namespace), Agent: ev.Agent, Name: publicName(id),
		TTL: ev.TTL, Adapts: ev.Any, Opened: ev.At, Renewed: ev.At, MinTTL: ev.TTL,
	}
	s.NS.season(ev.ID)
	s.Timer = Timer{Pos: -1, Ord: s.Num<<1 | 1, Sess: s}
	s.Seqs.Floor = ev.Acked
	s.Owner = ev.Actor
	s.NS.count(s.Owner, usage{sessions: 1})
	s.NS.Sessions[id] = s
	s.NS.Roll.add(s)
	s.NS.ByNum[s.Num] = s
	s.Place.Value = s
	s.NS.Roster.Insert(&s.Place, func(a, b *Session) bool { return a.Num < b.Num })
	st.SessionNum = max(st.SessionNum, s.Num)
	return nil
}

// forgetSession drops an ended session when nothing of it is left, once.
func (st *State) forgetSession(s *Session) {
	if !s.Dead || s.Work > 0 || len(s.Awaiting) > 0 || s.NS.ByNum[s.Num] != s {
		return
	}
	st.Timers.Clear(&s.Timer)
	s.NS.Lingering--
	delete(s.NS.Sessions, s.ID)
	s.NS.kept.leave(&s.IDs)
	delete(s.NS.ByNum, s.Num)
	s.NS.Roster.Remove(&s.Place)
	s.NS.EndedSessions.Push(endedSession{s.ID, s.Why})
	s.NS.EndReasons[s.ID] = s.Why
	if s.NS.EndedSessions.Len() > rememberedSessions {
		delete(s.NS.EndReasons, s.NS.EndedSessions.At(0).ID)
		s.NS.EndedSessions.Pop()
	}
}

// Flow finds or makes a flow of the session.
func (s *Session) Flow(name string) *FlowState {
	hash := s.NS.Salt.Hash(name)
	if f := s.FlowOf(name, hash); f != nil {
		return f
	}
	s.dropIdleFlows()
	f := &FlowState{Sess: s, Name: name, hashed: hash}
	s.Flows.Add(f)
	s.rest(f)
	return f
}

// FlowOf returns a flow of the session, or nil.
func (s *Session) FlowOf(name string, hash uint32) *FlowState {
	for f := s.Flows.First(hash); f != nil; f = *f.TableNext() {
		if f.Hash() == hash && f.Name == name {
			return f
		}
	}
	return nil
}

// request makes the request that an event of kind record.Queued or record.Granted tells of.
func (st *State) request(ev *record.Event) (*Request, error) {
	r := st.NewRequest()
	r.ID, r.Num = ev.ID, ev.Num
	r.Conditions = st.Namespace(ev.Namespace).Agree(ev.Terms)
	if ev.Session != 0 {
		s := st.numbered(ev.Namespace, ev.Session)
		if s == nil || s.NS != r.NS {
			return nil, errUnknown
		}
		r.Join(s.Flow(ev.Flow))
	} else {
		r.MutableExt().Guest = &AnonymousCaller{ev.Agent, ev.Actor}
	}
	r.Priority, r.Lead, r.Any = int8(ev.Priority), ev.Lead, ev.Any
	r.SetDetails(RequestDetail{Purpose: ev.Purpose, Trace: ev.Trace, Window: Window{ev.AsOf, ev.Version}, Documents: ev.Op&WantsDocuments != 0})
	r.SetClaims(ev.Claims)
	switch of, err := record.DecodeRun(ev.Blob); {
	case err != nil:
		return nil, err
	case of != (record.Run{}):
		r.MutableExt().Run = &record.Run{Org: of.Org, Workflow: of.Workflow}
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
		b := r.MutableExt()
		b.Target, b.TargetFlow, b.Encloses = r.NS.ByNum[ev.Target], ev.TargetFlow, ev.Op&Encloses != 0
		if r.Target == nil || r.Target.NS != r.NS || ev.Kind != record.Queued || len(ev.Claims) > 0 {
			return nil, errUnknown
		}
	}
	st.Resolve(r)
	return r, nil
}

func (st *State) NewRequest() *Request {
	if n := len(st.free); n > 0 {
		r := st.free[n-1]
		st.free = st.free[:n-1]
		return r
	}
	return &Request{Conditions: noTerms, RequestDetail: NoDetails, RequestExt: noExt}
}

// maxFree bounds the objects that are kept for reuse, of each kind.
const maxFree = 4096

// Discard frees a request's memory.
func (st *State) Discard(r *Request) {
	st.dropAlternatives(r)
	r.unneed()
	*r = Request{more: r.more, Conditions: noTerms, RequestDetail: NoDetails, RequestExt: noExt}
	r.SetClaims(nil)
	if len(st.free) < maxFree {
		st.free = append(st.free, r)
	}
}

func (st *State) evolveRequest(ev *record.Event) error {
	r := st.Hint.Req
	if r == nil {
		if st.Namespace(ev.Namespace).Knows(ev.ID) || len(ev.Claims) == 0 && ev.Target == 0 && ev.Kind == record.Queued ||
			ev.Any && ev.Kind != record.Queued {
			return fmt.Errorf("engine: request %d is made twice, or claims nothing", ev.Num)
		}
		var err error
		if r, err = st.request(ev); err != nil {
			return err
		}
	}
	r.NS.Requests.Add(r)
	r.Num = ev.Num
	st.Num = max(st.Num, r.Num)
	r.Granted, r.Renewed, r.Changed = ev.At, ev.At, ev.Changed
	r.Session().adapt(ev.TTL)
	if ev.Queued {
		r.deal().Arrived = ev.At.Add(-ev.Arrived)
	}
	if ev.Kind == record.Granted {
		r.Fence, r.Phase, r.Waited = ev.Fence, Held, ev.Waited
		r.setGeneration(ev.Generation)
		if ev.Offer {
			r.Phase = Offered
		}
		st.Fence = max(st.Fence, ev.Fence)
		if ev.Freed {
			r.goAway()
			r.expectBack()
			r.deal().Parking = &parkState{Since: ev.At, Until: ev.At} // record.Parked comes next, and has the details
			return nil
		}
		r.hold()
		r.spend(ev.At)
		r.observe()
		return nil
	}
	r.Phase = Waiting
	r.Wait = st.newWait()
	r.SetScore()
	r.shareKeys()
	st.enqueue(r)
	r.listWait()
	if r.Base != nil {
		r.Base.MutableExt().Conversion = r
	}
	if r.Target != nil {
		r.await()
	}
	return nil
}

// evolveProgress folds the later events of a request.
func (st *State) evolveProgress(ev *record.Event) error {
	r := st.Hint.Req
	if r == nil {
		if r = st.Namespace(ev.Namespace).Live(ev.ID); r == nil && ev.Kind != record.Tombstone {
			return errUnknown
		}
	}
	switch ev.Kind {
	case record.Admitted:
		if r.Phase != Waiting {
			return errUnknown
		}
		way := r.wayTo(ev.Claims)
		if way == nil {
			return errUnknown
		}
		if r.Base != nil {
			return st.evolveConversion(ev, r)
		}
		r.Changed = r.SawWrites()
		if d := r.Rare; d != nil && d.Arrived != 0 {
			d.Moved = r.MovedKeys(r.Wait.Writes)
		}
		r.unline()
		for other := range r.EachAlternative {
			if other != way {
				st.Changed(other)
			}
		}
		st.ChooseAlternative(r, way)
		r.setGeneration(ev.Generation)
		r.unask()
		st.dropWait(r)
		r.Fence, r.Granted, r.Renewed, r.Waited, r.Phase = ev.Fence, ev.At, ev.At, ev.Waited, Held
		if ev.Offer {
			r.Phase = Offered
		}
		st.Fence = max(st.Fence, ev.Fence)
		r.handOver(r, ev.Version)
		r.hold()
		r.spend(ev.At)
		r.observe()
	case record.Converted:
		if r.Phase != Held || len(ev.Claims) == 0 {
			return errUnknown
		}
		r.handOver(r, 0)
		st.changeClaims(r, ev, false)
	case record.TTLChanged:
		if r.Phase != Held || ev.TTL <= 0 {
			return errUnknown
		}
		r.setTTL(ev.TTL)
	case record.Claimed:
		if r.Phase != Offered {
			return errUnknown
		}
		r.Waited += ev.At.Sub(r.Granted) // so that it is known when it arrived
		r.Phase, r.Granted, r.Renewed, r.Spared = Held, ev.At, ev.At, false
		r.handOver(r, ev.Version)
		r.memberChanged()
	case record.YieldRequested:
		return r.evolveYieldRequested(ev)
	case record.Parked:
		return st.evolveParked(ev, r)
	case record.Decided:
		return r.evolveDecided(ev)
	case record.Resumed:
		return st.evolveResumed(ev, r)
	case record.KeysMoved:
		r.deal().Moved = nil
		for _, c := range ev.Claims {
			r.Rare.Moved = append(r.Rare.Moved, c.Key)
		}
	case record.Grace:
		if r.Phase != Held {
			return errUnknown
		}
		r.Phase, r.Reason, r.Renewed = InGrace, ev.Reason, ev.At
		r.setEndCause(endingOf(ev))
	case record.Closed:
		if r.Phase != Held && r.Phase != InGrace || r.LockDelay == 0 {
			return errUnknown
		}
		st.evolveClosed(ev, r)
	case record.Ended:
		if r.Phase == Waiting && !r.GoesBack() || r.Phase == Over {
			return errUnknown
		}
		st.evolveEnd(ev, r)
	case record.Left:
		if r.Phase != Waiting {
			return errUnknown
		}
		r.unline()
		st.Changed(r)
		if r.Base != nil {
			r.Base.MutableExt().Conversion = nil
		}
		target := r.Target
		if target != nil {
			r.unawait()
		}
		r.setEndCause(endingOf(ev))
		st.archive(r, ev.Reason)
		if target != nil {
			st.forgetSession(target)
		}
	case record.Tombstone:
		s := st.Namespace(ev.Namespace)
		if s.Knows(ev.ID) || len(ev.Claims) == 0 && ev.Fence != 0 && ev.ByID == [16]byte{} {
			return errUnknown
		}
		s.Tombstones.push(
			collection.HashID(ev.ID),
			tombstone{ID: ev.ID, Num: ev.Num, Fence: ev.Fence, Claims: ev.Claims, EndCause: endingOf(ev), Reason: ev.Reason},
		)
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
		end.Task = ev.ByID
	}
	return end
}

func causeOf(ev *record.Event) *endCause {
	switch {
	case len(ev.Cycle) > 0:
		return &endCause{Cycle: ev.Cycle}
	case ev.Reason == record.ByRevocation:
		return &endCause{Actor: ev.Actor, Words: ev.Outcome}
	case ev.Reason == record.ByPreemption:
		return &endCause{Actor: ev.Actor, Asker: ev.Asker}
	case ev.Reason == record.ByBreak && ev.Outcome != "":
		return &endCause{Asker: ev.Asker, Words: ev.Outcome}
	case (ev.Reason == record.ByConversion || ev.Reason == record.ByBase) && !ev.Part:
		return &endCause{Base: ev.Base, BaseID: ev.BaseID}
	}
	return nil
}

func (st *State) evolveEnd(ev *record.Event, r *Request) {
	r.setEndCause(endingOf(ev))
	if r.IsParked() {
		st.endParking(r)
	}
	switch r.Phase {
	case Away:
	case Waiting: // to be resumed
		r.Fence = ev.Fence
		r.unline()
		st.Changed(r)
	default:
		st.giveBack(r)
	}
	if ev.Note != "" {
		for _, c := range r.Claims() {
			r.NS.leaveNote(string(c.Key), note{ev.At, ev.Agent, r.Fence, ev.Outcome, ev.Note})
		}
	}
	if r.Share == nil && len(r.Claims()) > 0 {
		r.NS.observe(r.Claims()[0].Key, ev.Held)
	}
	st.archive(r, ev.Reason)
}

// giveBack releases the keys of r.
func (st *State) giveBack(r *Request) {
	r.unhold()
	needs := r.Needs()
	writes := false
	for i := range needs {
		m := &needs[i]
		writes = writes || m.Claimed && m.Counts == 0 && lockmode.Writing.Has(m.Mode)
	}
	if writes {
		st.Writes++
		for i := range needs {
			m := &needs[i]
			if l := m.Node.Line; l != nil && m.Counts == 0 && lockmode.Writing.Has(m.Mode) {
				l.wrote = st.Writes
				if m.Mode == lockmode.X {
					l.wroteAll = st.Writes
				}
			}
		}
	}
	st.Changed(r)
}

// SawWrites reports whether a possible writer held one of r's keys, in whole or in part, while
// r waited.
func (r *Request) SawWrites() bool {
	if r.Changed {
		return true
	}
	for way := range r.EachAlternative {
		for i := range way.Needs() {
			l := way.Needs()[i].Node.Line
			if l.wroteAll > r.Wait.Writes || way.Needs()[i].Claimed && l.wrote > r.Wait.Writes {
				return true
			}
		}
	}
	return false
}
