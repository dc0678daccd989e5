package engine_test

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// fold takes ev into the state.
func (m *model) fold(cmd engine.Command, ev *record.Event) {
	m.events++
	m.last = max(m.last, ev.At)
	m.begins(ev)
	switch ev.Kind {
	case record.Queued, record.Granted, record.TaskDispatched, record.TTLChanged:
		m.sessionByNum(ev.Session).adapt(ev.TTL)
	}
	switch ev.Kind {
	case record.Opened:
		m.epoch, m.fence, m.base = ev.Epoch, ev.Fence, ev.Version
		m.foldIdle(ev.Idle)
		m.recorded = nil
	case record.SessionOpened:
		open := cmd.(*engine.OpenSession)
		s := &session{
			num: ev.Session, ns: open.Namespace, id: open.ID, agent: open.Agent, ttl: open.TTL, beat: at(m.now),
			owner: open.Actor, adapts: open.TTL == 0,
		}
		if s.adapts {
			s.ttl = interlock.DefaultTTL
		}
		m.sessions = append(m.sessions, s)
	case record.SessionEnded:
		s := m.sessionByNum(ev.Session)
		s.ended, s.why = true, ev.Reason
		m.dismiss(interlock.CodeSessionEnded, func(w *worker) bool { return w.session == s })
		m.endFollows(s)
	case record.Queued, record.Granted:
		if ev.Part {
			m.foldPart(ev)
			break
		}
		r := m.made(cmd, ev.Num)
		if ev.Kind == record.Granted {
			m.open(r)
		}
		m.requests = append(m.requests, r)
		if ev.Kind == record.Granted {
			m.readAsOf(r)
			m.handOver(r)
			r.claims, r.ask.Any = ev.Claims, false
			m.hand(r, held, ev.Fence)
			break
		}
		m.readAsOf(r)
		r.phase, r.lapse, r.queuedAt = waiting, at(m.now.Add(interlock.BareTicketTTL)), m.events
		r.attached, r.link = r.ask.From, r.ask.Link // within this step its caller listens
		for _, q := range m.mustAsk(r) {
			m.due = append(m.due, yieldAsk{q, r})
		}
	case record.Admitted:
		r := m.subjectOf(ev)
		m.open(r)
		if r.ask.Any {
			r.unsure = m.changedMeanwhile(r, false)
			r.claims, r.ask.Any = ev.Claims, false
		}
		r.changed = m.changedMeanwhile(r, false)
		r.unsure = r.unsure || m.changedMeanwhile(r, true)
		if r.since > 0 {
			r.moved = m.movedMeanwhile(r)
		}
		m.handOver(r)
		if r.base != nil {
			m.convert(r.base, r.claims, ev.Fence)
			if r.base.upTo = r.upTo; !r.base.goesBack && !r.base.staysPut {
				r.base.asOf = r.asOf
			} else if r.upTo == r.asOf {
				r.base.upTo = 0 // nothing was committed while it waited
			}
			r.base.changed, r.base.unsure = r.changed, r.unsure
			r.phase, r.why, r.ended, r.attached = over, record.ByConversion, m.now, nil
			break
		}
		if !ev.Offer {
			m.hand(r, held, ev.Fence)
			break
		}
		m.hand(r, offered, ev.Fence)
		r.lapse = at(m.now.Add(interlock.OfferTTL))
		if r.session == nil {
			r.lapse = at(m.now.Add(interlock.BareOfferTTL))
		}
	case record.Parked:
		if r := m.subjectOf(ev); ev.Reason != 0 {
			m.putBack(r, ev)
		} else {
			m.park(r, ev)
		}
	case record.Decided:
		m.subjectOf(ev).decision = &interlock.Decision{
			Verdict: interlock.Verdict(ev.Op), By: ev.Agent, Principal: ev.Actor, Reason: ev.Note,
		}
	case record.Resumed:
		m.resume(cmd.(*engine.Resume), ev)
		r := m.subjectOf(ev)
		r.session.adapt(r.ask.TTL)
	case record.YieldRequested:
		m.asks = append(m.asks, yieldAsk{m.subjectOf(ev), m.byNum(ev.By)})
	case record.PatternSet, record.PatternDropped, record.Configured:
		m.foldRules(cmd)
	case record.QueueSet, record.QueueDropped:
		m.foldQueue(cmd)
	case record.WebhookSet, record.WebhookRotated, record.WebhookDeleted, record.WebhookDelivered:
		m.foldWebhook(cmd)
	case record.NamespaceDeleted:
		m.foldDeletion(ev.Namespace)
	case record.TaskSubmitted:
		m.foldTask(cmd, ev)
	case record.TaskMoved, record.AttemptFailed:
		m.foldStanding(cmd, ev)
	case record.ApprovalRequested:
		m.foldQuestion(cmd, ev)
	case record.ApprovalDecided:
		m.foldVerdict(cmd, ev)
	case record.TaskDispatched:
		m.foldHanding(cmd, ev)
	case record.TaskForgotten:
		m.tasks = slices.DeleteFunc(m.tasks, func(t *task) bool { return t.ns == ev.Namespace && t.id == ev.ID })
	case record.EffectChanged:
		m.foldDeed(cmd)
	case record.EffectsForgotten:
		m.foldForgotten(ev)
	case record.Written:
		m.foldWritten(ev)
	case record.Converted:
		m.open(m.made(cmd, 0))
		m.convert(m.subjectOf(ev), ev.Claims, ev.Fence)
		m.subjectOf(ev).upTo = 0
	case record.TTLChanged:
		r := m.subjectOf(ev)
		r.ask.TTL = ev.TTL
		for _, part := range m.requests {
			if part.member == r {
				part.ask.TTL = ev.TTL
			}
		}
	case record.Closed:
		r := m.subjectOf(ev)
		m.breaks(r, ev.Reason)
		if r.phase != inGrace {
			m.lose(r)
		}
		r.phase, r.why, r.ended, r.opening = closed, ev.Reason, m.now, at(m.now.Add(ev.LockDelay))
	case record.Claimed:
		r := m.subjectOf(ev)
		m.handOver(r)
		r.phase, r.granted, r.heldFrom, r.beat, r.progress = held, m.now, m.now, at(m.now), at(m.now)
	case record.Grace:
		r := m.subjectOf(ev)
		m.breaks(r, ev.Reason)
		r.graceTo = span{r.hardEnd().lo.Add(r.ask.Grace), m.now.Add(r.ask.Grace)}
		switch ev.Reason {
		case record.ByPreemption, record.ByDeadlock:
			r.graceTo = r.graceUpTo(at(m.now.Add(r.ask.Grace)), ev.Reason)
		case record.ByDeath:
			r.graceTo.lo = min(r.graceTo.lo, r.session.deadline().lo.Add(r.ask.Grace))
		}
		r.phase, r.why, r.ended = inGrace, ev.Reason, m.now
		m.lose(r)
	case record.Ended, record.Left:
		r := m.subjectOf(ev)
		m.breaks(r, ev.Reason)
		if ev.Kind == record.Left && ev.Reason == record.ByDeadlock {
			m.victims = append(m.victims, r.party())
		}
		if r.active() &&
			slices.Contains(
				[]record.Reason{
					record.ByTTL, record.ByMaxHold, record.ByStall, record.ByRevocation, record.ByPreemption, record.ByDeadlock,
					record.ByForgetting, record.ByTakeOver,
				},
				ev.Reason,
			) {
			m.lose(r)
		}
		if r.holds() {
			m.writes = append(m.writes, write{r.ns, r.claims, m.events, nil})
		}
		if ev.Note != "" {
			for _, c := range r.claims {
				m.notes = append(m.notes, note{r.ns, c.Key, r.fence})
			}
		}
		r.phase, r.why, r.ended, r.attached = over, ev.Reason, m.now, nil
		if ev.Reason == record.ByTakeOver {
			m.passed = r
		}
	}
	if ev.RequestID != "" {
		m.remember(cmd, ev)
	}
	m.rest()
	m.ranks = nil // they were worked out on the way
}

func (m *model) hand(r *request, to phase, fence interlock.Fence) {
	m.join(r)
	r.handedAt = m.events
	for _, c := range r.claims {
		if r.member == nil {
			m.spend(r.ns, c.Key, tokens(c))
		}
	}
	if r.session != nil {
		r.said = r.session.said
	}
	r.phase, r.fence, r.granted, r.heldFrom, r.attached = to, fence, m.now, m.now, nil
	r.beat, r.progress, r.unknown = at(m.now), at(m.now), false
	m.fence = fence
}

func (m *model) lose(r *request) {
	if r.member != nil {
		return
	}
	if r.session != nil && !r.session.ended && !slices.Contains(r.session.losses, r) {
		r.session.losses = append(r.session.losses, r)
	}
}
