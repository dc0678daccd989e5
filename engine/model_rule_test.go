package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// permit says whether ev may happen now, as part of carrying out cmd. It judges
// by the state before ev.
func (m *model) permit(cmd engine.Command, ev *engine.Event) error {
	if ev.At != m.now {
		return fmt.Errorf("it is dated %d, but it is %d", ev.At, m.now)
	}
	if ev.RequestID != "" && ev.RequestID != headOf(cmd).RequestID || ev.Seq != 0 && ev.Seq != headOf(cmd).Seq {
		return fmt.Errorf("it answers the request id %s %d, which is not that of the command", ev.RequestID, ev.Seq)
	}
	switch ev.Kind {
	case engine.EvOpened:
		rec, ok := cmd.(*engine.Recover)
		switch {
		case !ok:
			return errors.New("no term begins here")
		case ev.Epoch != rec.Epoch:
			return fmt.Errorf("want epoch %d, got %d", rec.Epoch, ev.Epoch)
		case ev.Fence < m.fence+interlock.Fence(rec.FenceJump):
			return fmt.Errorf("fences must be above %d after a jump of %d, got %d", m.fence, rec.FenceJump, ev.Fence)
		}
	case engine.EvSessionOpened:
		open, ok := cmd.(*engine.OpenSession)
		if !ok || ev.Agent != open.Agent || m.sessionByNum(ev.Session) != nil {
			return errors.New("nobody opened that session, or its number was used before")
		}
	case engine.EvSessionEnded:
		return m.permitSessionEnd(cmd, ev)
	case engine.EvQueued, engine.EvGranted:
		return m.permitRequest(cmd, ev)
	case engine.EvAdmitted:
		return m.permitAdmission(ev)
	case engine.EvClaimed:
		r := m.byNum(ev.Num)
		if r == nil || r.phase != offered {
			return fmt.Errorf("there is no such offer: %v", r)
		}
		if !m.asksFor(cmd, r) {
			return fmt.Errorf("nobody asked for the offer to %v", r)
		}
	case engine.EvGrace:
		return m.permitGrace(ev)
	case engine.EvEnded:
		return m.permitEnd(cmd, ev)
	case engine.EvLeft:
		return m.permitLeaving(cmd, ev)
	case engine.EvAnswered:
		if headOf(cmd).RequestID == "" && headOf(cmd).Seq == 0 {
			return errors.New("the command has no request id")
		}
	default:
		return errors.New("this kind belongs into snapshots only")
	}
	return nil
}

func (m *model) permitSessionEnd(cmd engine.Command, ev *engine.Event) error {
	s := m.sessionByNum(ev.Session)
	switch {
	case s == nil || s.ended:
		return errors.New("there is no such session")
	case ev.Reason == engine.BySession:
		if c, ok := cmd.(*engine.CloseSession); !ok || c.Session != s.id {
			return errors.New("nobody closed that session")
		}
	case ev.Reason == engine.ByDeath:
		if !s.deadline().mayBeDue(m.now) {
			return fmt.Errorf("its heartbeats reach until %v, and it is %d", s.deadline(), m.now)
		}
	default:
		return fmt.Errorf("%v is no reason for a session to end", ev.Reason)
	}
	return nil
}

// permitRequest: a new request stands in line or is granted at once, whichever
// the holders and the line demand.
func (m *model) permitRequest(cmd engine.Command, ev *engine.Event) error {
	ask, ok := cmd.(*engine.Acquire)
	if !ok {
		return errors.New("nobody asked for it")
	}
	if m.byNum(ev.Num) != nil {
		return fmt.Errorf("the number %d was used before", ev.Num)
	}
	if ev.ID != ask.ID || !slices.Equal(ev.Claims, normal(ask.Claims)) || ev.Priority != ask.Priority {
		return fmt.Errorf("it does not say what was asked for: %+v", ev)
	}
	blockers := m.blockers(m.newRequest(ask, ev.Num))
	if ev.Kind == engine.EvQueued {
		if len(blockers) == 0 {
			return errors.New("nothing stands in its way")
		}
		return nil
	}
	if len(blockers) > 0 {
		return fmt.Errorf("it is not free: %v", blockers[0])
	}
	return m.permitFence(ev.Fence)
}

func (m *model) permitFence(f interlock.Fence) error {
	if f <= m.fence {
		return fmt.Errorf("fence %d is not above %d (I2)", f, m.fence)
	}
	return nil
}

func (m *model) permitAdmission(ev *engine.Event) error {
	r := m.byNum(ev.Num)
	if r == nil || r.phase != waiting {
		return fmt.Errorf("it does not wait: %v", r)
	}
	if blockers := m.blockers(r); len(blockers) > 0 {
		return fmt.Errorf("%v is blocked by %v (I1, I5)", r, blockers[0])
	}
	if r.session != nil && r.session.ended {
		return fmt.Errorf("%v is of a session that has ended (I4)", r)
	}
	if listens := m.listener(r) != nil; ev.Offer == listens {
		return fmt.Errorf("%v: offer=%v, somebody listens=%v", r, ev.Offer, listens)
	}
	if ev.Waited != m.now.Sub(r.arrived) {
		return fmt.Errorf("%v waited %v, not %v", r, m.now.Sub(r.arrived), ev.Waited)
	}
	return m.permitFence(ev.Fence)
}

// listener is whom a grant to r would reach, nil when nobody.
func (m *model) listener(r *request) engine.Caller {
	if r.attached != nil {
		return r.attached
	}
	if r.session != nil && r.session.receiver != nil {
		return r.session.receiver
	}
	return nil
}

// asksFor reports whether cmd takes up the offer to r.
func (m *model) asksFor(cmd engine.Command, r *request) bool {
	switch c := cmd.(type) {
	case *engine.Poll:
		return c.Ticket == interlock.TicketID(r.ask.ID)
	case *engine.Acquire:
		known := m.answerTo(&c.Head)
		return known != nil && known.num == r.num
	case *engine.Attach:
		return r.session != nil && c.Session == r.session.id
	}
	return false
}

func (m *model) permitGrace(ev *engine.Event) error {
	r := m.byNum(ev.Num)
	if r == nil || r.phase != held {
		return fmt.Errorf("it is not held: %v", r)
	}
	if r.ask.Grace <= 0 {
		return fmt.Errorf("%v has no grace", r)
	}
	return m.permitHardEnd(r, ev.Reason)
}

// permitHardEnd: a lease comes to its hard end for a reason that time gives.
func (m *model) permitHardEnd(r *request, why engine.Reason) error {
	var end span
	switch why {
	case engine.ByTTL:
		end = r.ttlEnd()
	case engine.ByMaxHold:
		limit, ok := r.capEnd()
		if !ok {
			return fmt.Errorf("%v has no max_hold", r)
		}
		end = limit
	case engine.ByDeath:
		if r.session == nil {
			return fmt.Errorf("%v has no session", r)
		}
		if r.session.ended {
			return nil
		}
		end = r.session.deadline()
	default:
		return fmt.Errorf("%v is no reason for a hard end", why)
	}
	if !end.mayBeDue(m.now) {
		return fmt.Errorf("%v ends at %v at the earliest, and it is %d (I8)", r, time.Duration(end.lo), m.now)
	}
	return nil
}

func (m *model) permitEnd(cmd engine.Command, ev *engine.Event) error {
	r := m.byNum(ev.Num)
	if r == nil || !r.active() {
		return fmt.Errorf("it is no lease: %v", r)
	}
	if ev.Fence != r.fence {
		return fmt.Errorf("%v: fence %d", r, ev.Fence)
	}
	wrong := fmt.Errorf("%v: nobody gave a reason to end it by %v", r, ev.Reason)
	switch ev.Reason {
	case engine.ByRelease, engine.ByLeaving:
		switch c := cmd.(type) {
		case *engine.Release:
			if c.Lease == interlock.LeaseID(r.ask.ID) && c.Namespace == r.ns {
				return nil
			}
		case *engine.Leave:
			if c.Ticket == interlock.TicketID(r.ask.ID) && c.Namespace == r.ns {
				return nil
			}
		}
		return wrong
	case engine.ByRevocation:
		if c, ok := cmd.(*engine.Revoke); !ok || c.Fence != r.fence || c.Namespace != r.ns {
			return wrong
		}
	case engine.BySession:
		if c, ok := cmd.(*engine.CloseSession); !ok || r.session == nil || c.Session != r.session.id {
			return wrong
		}
	case engine.ByLapse:
		if r.phase != offered || !r.lapse.mayBeDue(m.now) {
			return wrong
		}
	case engine.ByTTL, engine.ByMaxHold, engine.ByDeath:
		switch {
		case r.phase == inGrace:
			if ev.Reason != r.why || !r.graceTo.mayBeDue(m.now) {
				return fmt.Errorf("%v is in grace by %v until %v, and it is %d (I8)", r, r.why, r.graceTo, m.now)
			}
		case r.ask.Grace > 0 && r.phase == held:
			return fmt.Errorf("%v ends without its grace", r)
		default:
			return m.permitHardEnd(r, ev.Reason)
		}
	default:
		return wrong
	}
	return nil
}

func (m *model) permitLeaving(cmd engine.Command, ev *engine.Event) error {
	r := m.byNum(ev.Num)
	if r == nil || r.phase != waiting {
		return fmt.Errorf("it does not wait: %v", r)
	}
	wrong := fmt.Errorf("%v: nobody gave a reason to leave by %v", r, ev.Reason)
	switch ev.Reason {
	case engine.ByLeaving:
		if c, ok := cmd.(*engine.Leave); !ok || c.Ticket != interlock.TicketID(r.ask.ID) || c.Namespace != r.ns {
			return wrong
		}
	case engine.BySession:
		if c, ok := cmd.(*engine.CloseSession); !ok || r.session == nil || c.Session != r.session.id {
			return wrong
		}
	case engine.ByDeath:
		if r.session == nil || !r.session.ended && !r.session.deadline().mayBeDue(m.now) {
			return wrong
		}
	case engine.ByLapse:
		if r.session != nil || r.attached != nil || !r.lapse.mayBeDue(m.now) {
			return wrong
		}
	case engine.ByDeadlock:
		return m.permitVictim(r, ev.Cycle)
	default:
		return wrong
	}
	return nil
}

// permitVictim holds the rule for victims (I6): on a real cycle, and the one of
// its members that the rule chooses; and the cycle that is spelled out is real.
func (m *model) permitVictim(r *request, cycle []interlock.CycleStep) error {
	if !m.onCycle(r, func(*request) bool { return true }) {
		return fmt.Errorf("%v is on no cycle", r)
	}
	if !m.rightVictim(r) {
		return fmt.Errorf("%v: on each of its cycles somebody else is to be the victim", r)
	}
	return m.realCycle(r, cycle)
}

// realCycle checks the cycle that was spelled out: each step waits for the next
// one, at the key and in the mode that it says, and the victim is marked.
func (m *model) realCycle(victim *request, cycle []interlock.CycleStep) error {
	var victims int
	for i, step := range cycle {
		next := cycle[(i+1)%len(cycle)]
		var real bool
		for _, q := range m.inPhase(waiting) {
			if !m.isStep(q, step) || !slices.Contains(q.ask.Claims, interlock.Claim{Key: step.Key, Mode: step.Mode}) {
				continue
			}
			if step.Victim && q != victim {
				continue
			}
			for _, b := range m.blockers(q) {
				real = real || m.isStep(b, next)
			}
		}
		if !real {
			return fmt.Errorf("step %d of the cycle %+v is no wait for the next step", i+1, cycle)
		}
		if step.Victim {
			victims++
		}
	}
	if victims != 1 || len(cycle) < 2 {
		return fmt.Errorf("the cycle %+v has %d victims", cycle, victims)
	}
	return nil
}

func (m *model) isStep(r *request, step interlock.CycleStep) bool {
	if r.session == nil {
		return step.Session == "" && step.Agent == r.ask.Agent && step.Flow == r.ask.Flow
	}
	return step.Session != "" && step.Agent == r.session.agent && step.Flow == r.ask.Flow
}

// newRequest is the request that ask would make.
func (m *model) newRequest(ask *engine.Acquire, num uint64) *request {
	r := &request{num: num, ns: ask.Namespace, ask: *ask, arrived: m.now}
	if !ask.Session.IsZero() {
		r.session = m.sessionByID(ask.Namespace, ask.Session)
	}
	r.ask.Claims = normal(ask.Claims)
	switch {
	case r.session == nil:
		r.ask.Flow = "" // flows are a session's
	case ask.Flow == "":
		r.ask.Flow = "main"
	}
	if ask.TTL == 0 {
		r.ask.TTL = interlock.DefaultTTL
		if r.session != nil {
			r.ask.TTL = r.session.ttl
		}
	}
	switch ask.Grace {
	case 0:
		r.ask.Grace = interlock.DefaultGrace
	case engine.NoGrace:
		r.ask.Grace = 0
	}
	return r
}

// normal spells out the zero Mode, and puts the claims into the order in which
// the engine keeps them.
func normal(claims []interlock.Claim) []interlock.Claim {
	list := slices.Clone(claims)
	for i := range list {
		if list[i].Mode == 0 {
			list[i].Mode = interlock.Exclusive
		}
	}
	return list
}

// fold takes ev into the state.
func (m *model) fold(cmd engine.Command, ev *engine.Event) {
	m.events++
	switch ev.Kind {
	case engine.EvOpened:
		m.epoch, m.fence = ev.Epoch, ev.Fence
	case engine.EvSessionOpened:
		open := cmd.(*engine.OpenSession)
		s := &session{num: ev.Session, ns: open.Namespace, id: open.ID, agent: open.Agent, ttl: open.TTL, beat: at(m.now)}
		if s.ttl == 0 {
			s.ttl = interlock.DefaultTTL
		}
		m.sessions = append(m.sessions, s)
	case engine.EvSessionEnded:
		s := m.sessionByNum(ev.Session)
		s.ended, s.why = true, ev.Reason
	case engine.EvQueued, engine.EvGranted:
		r := m.newRequest(cmd.(*engine.Acquire), ev.Num)
		m.requests = append(m.requests, r)
		if ev.Kind == engine.EvGranted {
			m.hand(r, held, ev.Fence)
			break
		}
		r.phase, r.lapse, r.queuedAt = waiting, at(m.now.Add(interlock.BareTicketTTL)), m.events
		r.attached, r.link = r.ask.From, r.ask.Link // within this step its caller listens
	case engine.EvAdmitted:
		r := m.byNum(ev.Num)
		r.changed = m.changedMeanwhile(r)
		if !ev.Offer {
			m.hand(r, held, ev.Fence)
			break
		}
		m.hand(r, offered, ev.Fence)
		r.lapse = at(m.now.Add(interlock.OfferTTL))
		if r.session == nil {
			r.lapse = at(m.now.Add(interlock.BareOfferTTL))
		}
	case engine.EvClaimed:
		r := m.byNum(ev.Num)
		r.phase, r.granted, r.beat = held, m.now, at(m.now)
	case engine.EvGrace:
		r := m.byNum(ev.Num)
		r.graceTo = span{r.hardEnd().lo.Add(r.ask.Grace), m.now.Add(r.ask.Grace)}
		if ev.Reason == engine.ByDeath {
			r.graceTo.lo = min(r.graceTo.lo, r.session.deadline().lo.Add(r.ask.Grace))
		}
		r.phase, r.why, r.ended = inGrace, ev.Reason, m.now
		m.lose(r)
	case engine.EvEnded, engine.EvLeft:
		r := m.byNum(ev.Num)
		if r.active() && slices.Contains([]engine.Reason{engine.ByTTL, engine.ByMaxHold, engine.ByRevocation}, ev.Reason) {
			m.lose(r)
		}
		if r.active() {
			r.endedAt = m.events
		}
		if ev.Note != "" {
			for _, c := range r.ask.Claims {
				m.notes = append(m.notes, note{r.ns, c.Key, r.fence})
			}
		}
		r.phase, r.why, r.ended, r.attached = over, ev.Reason, m.now, nil
	}
	if ev.RequestID != "" {
		m.remember(cmd, ev)
	}
}

func (m *model) hand(r *request, to phase, fence interlock.Fence) {
	r.phase, r.fence, r.granted, r.beat, r.attached = to, fence, m.now, at(m.now), nil
	m.fence = fence
}

func (m *model) lose(r *request) {
	if r.session != nil && !r.session.ended && !slices.Contains(r.session.losses, r) {
		r.session.losses = append(r.session.losses, r)
	}
}
