package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// parkTerms returns how c would park a lease: whether its keys are freed, and for how
// long; or why not.
func (m *model) parkTerms(lease *request, c *engine.Park) (freed bool, term time.Duration, codes []interlock.Code) {
	if c.Free && c.Keep {
		codes = append(codes, interlock.CodeInvalidRequest)
	}
	if c.For < 0 || c.For > interlock.MaxPark {
		codes = append(codes, interlock.CodeInvalidTTL)
	}
	term, freed = c.For, c.Free
	var free, keep bool
	var longest time.Duration
	for _, claim := range lease.claims {
		p := m.pattern(lease.ns, claim.Key)
		if p == nil {
			continue
		}
		if p.Park == interlock.ParkNever || p.Park == interlock.ParkKeep && c.Free || p.Park == interlock.ParkFree && c.Keep {
			codes = append(codes, interlock.CodeInvalidRequest)
		}
		free, keep = free || p.Park == interlock.ParkFree, keep || p.Park == interlock.ParkKeep
		if p.MaxPark > 0 && (longest == 0 || p.MaxPark < longest) {
			longest = p.MaxPark
		}
	}
	switch {
	case term == 0 && longest > 0:
		term = longest
	case term == 0:
		term = interlock.DefaultPark
	case longest > 0:
		term = min(term, longest)
	}
	if !c.Keep && !c.Free {
		freed = free && !keep
	}
	return freed, term, codes
}

func (m *model) expectPark(c *engine.Park) answer {
	_, _, plain := m.parkTerms(&request{}, c) // what is wrong with any lease
	want := m.withTaken(&c.Head, c.Lease, func(lease *request) answer {
		freed, _, wrong := m.parkTerms(lease, c)
		wrong = append(wrong, m.notTaken(&c.Head, lease)...)
		if _, member := lease.membership(); member || lease.set != nil || lease.member != nil || lease.task != nil {
			return refusalKey(interlock.CodeInvalidRequest)
		}
		// With another holder it would block what its flow holds besides, or did.
		for _, q := range m.requests {
			if q != lease && q.holds() && q.holder() == lease.holder() && !freed && anyClash(q.claims, lease.claims) {
				wrong = append(wrong, interlock.CodeHeld)
			}
		}
		if len(wrong) > 0 {
			return refusalKey(wrong...)
		}
		return answer{outcome: engine.Done}
	})
	if want.outcome == engine.Refused {
		want.codes = append(want.codes, plain...) // whichever is looked at first
	}
	return want
}

func (m *model) permitParking(cmd engine.Command, ev *record.Event) error {
	c, ok := cmd.(*engine.Park)
	lease := m.subjectOf(ev)
	if ev.Reason != 0 {
		return m.permitPutBack(cmd, lease, ev)
	}
	if !ok || lease == nil || lease.phase != held || c.Lease != interlock.LeaseID(lease.ask.ID) {
		return fmt.Errorf("nobody parks %v", lease)
	}
	freed, term, codes := m.parkTerms(lease, c)
	if len(codes) > 0 || ev.Freed != freed || ev.TTL != term || ev.Note != c.Reason || ev.Actor != c.Actor {
		return fmt.Errorf("%v is parked with freed=%v for %v, want %v, %v, %v", lease, ev.Freed, ev.TTL, freed, term, codes)
	}
	return nil
}

// park takes a lease out of its session.
func (m *model) park(r *request, ev *record.Event) {
	m.breaks(r, ev.Reason)
	if ev.Freed {
		m.asks = slices.DeleteFunc(m.asks, func(a yieldAsk) bool { return a.lease == r }) // that is done
		m.writes = append(m.writes, write{r.ns, r.claims, m.events, nil})
	}
	r.question, r.parker, r.parkedAt, r.parkFence, r.decision = ev.Note, ev.Actor, m.now, r.fence, nil
	r.ask.TTL, r.ask.Agent, r.ask.Actor = r.ttl(), m.agentOf(r), r.ownerOf()
	r.session, r.ask.Flow = nil, ""
	r.away, r.asOf = true, m.version(r.ns)
	r.phase, r.freed, r.goesBack, r.staysPut, r.parkUntil = parked, ev.Freed, false, false, m.now.Add(ev.TTL)
	r.heldBefore += m.now.Sub(r.heldFrom)
	r.queuedAt = m.events
	r.heldFrom = m.now
	r.setParkEnd()
}

// setParkEnd computes when the parking ends: its max_hold continues if it keeps its keys.
func (r *request) setParkEnd() {
	if r.parkEnd = at(r.parkUntil); !r.freed {
		if limit, ok := r.capEnd(); ok {
			r.parkEnd = earlier(r.parkEnd, limit)
		}
	}
}

// answerListener is a caller that waits for the answer about a parked lease.
type answerListener struct {
	to   engine.Caller
	link uint64
}

// awaits takes in that a resumption waits for the answer about a lease, or no more.
func (m *model) awaits(c *engine.Resume, r *request, got *engine.Effect) {
	switch {
	case got.Outcome == engine.Queued:
		if len(r.hearers) == 16 {
			m.parted = append(m.parted, &push{to: r.hearers[0].to, outcome: engine.Refused, about: r, must: true})
			r.hearers = r.hearers[1:]
		}
		r.hearers = append(r.hearers, answerListener{c.From, c.Link})
	case r.asksHuman() && !c.Unapproved && got.Code == interlock.CodeParked:
		r.unhear(c.Link)
	}
}

func (r *request) unhear(link uint64) {
	r.hearers = slices.DeleteFunc(r.hearers, func(h answerListener) bool { return h.link == link })
}

// woken lists the listeners to notify that the question about a parked lease is answered, or
// withdrawn.
func (r *request) woken(ev *record.Event) (list []*push) {
	switch ev.Kind {
	case record.Decided, record.Resumed, record.Ended:
		for _, h := range r.hearers {
			list = append(list, &push{to: h.to, outcome: engine.Refused, about: r, must: true})
		}
		r.hearers = nil
	}
	return list
}

// expectAnswered: a lease that asks is resumed once it is approved; a resumption that may wait
// waits for that. A resumption with Unapproved ignores the question.
func (m *model) expectAnswered(c *engine.Resume, lease *request) (want answer, ok bool) {
	d := lease.decision
	switch {
	case m.mayResume(c, lease):
		return want, false
	case d != nil:
		return refusalKey(interlock.CodeDenied), true
	case !c.Attach || c.OnConflict != interlock.Wait && c.OnConflict != interlock.Preempt:
		return refusalKey(interlock.CodeParked), true
	}
	return answer{outcome: engine.Queued, check: func(got *engine.Effect) error {
		if got.Question == nil || got.Question.Fence != lease.parkFence || got.Ticket.ID != interlock.TicketID(lease.ask.ID) {
			return fmt.Errorf("who waits for the answer about %v is told %v", lease, effectText(got))
		}
		return nil
	}}, true
}

func (m *model) mayResume(c *engine.Resume, lease *request) bool {
	return lease.question == "" || c.Unapproved || lease.decision != nil && lease.decision.Verdict == interlock.Approved
}

// asksHuman reports whether a person is to decide about a parked lease.
func (r *request) asksHuman() bool {
	return r.phase == parked && r.question != "" && r.decision == nil
}

// expectDecision: a question about a parked lease is answered once, and not by its holder.
func (m *model) expectDecision(c *engine.Answer) answer {
	r := m.parkedWith(c.Namespace, c.Fence)
	principals, ok := m.actsFor(c)
	d := interlock.Decision{Verdict: c.Verdict, By: answerer(c), Principal: c.Actor}
	switch {
	case r == nil || r.question == "":
		return refusalKey(interlock.CodeNotAsking)
	case r.decision != nil:
		if d.Reason = r.decision.Reason; *r.decision != d {
			return refusalKey(interlock.CodeNotAsking)
		}
	case !ok || slices.ContainsFunc(principals, r.isHeldBy):
		return refusalKey(interlock.CodeForbidden)
	}
	return answer{outcome: engine.Done, check: func(got *engine.Effect) error {
		if q := got.Question; q == nil || q.Fence != c.Fence || q.Decision == nil || q.Decision.Verdict != c.Verdict {
			return fmt.Errorf("the answer is about %+v, not about fence %d", got.Question, c.Fence)
		}
		return nil
	}}
}

// isHeldBy reports whether a principal holds or parked a lease.
func (r *request) isHeldBy(name string) bool {
	return name != "" && (name == r.ownerOf() || name == r.parker)
}

// parkedWith is the parked lease that had a fence, nil for none.
func (m *model) parkedWith(ns interlock.Namespace, fence interlock.Fence) *request {
	for _, r := range m.requests {
		if r.ns == ns && r.phase == parked && r.parkFence == fence {
			return r
		}
	}
	return nil
}

func (m *model) permitDecision(cmd engine.Command, ev *record.Event) error {
	c, ok := cmd.(*engine.Answer)
	r := m.subjectOf(ev)
	if !ok || r == nil || !r.asksHuman() || c.Fence != r.parkFence || c.Fence != ev.Fence {
		return fmt.Errorf("nobody decides about %v", r)
	}
	if interlock.Verdict(ev.Op) != c.Verdict || ev.Agent != answerer(c) || ev.Actor != c.Actor || ev.Note != c.Reason {
		return fmt.Errorf("%v is decided as %+v, want %+v", r, ev, c)
	}
	return nil
}

// checkQuestions compares the parked leases that ask a person with the listing of them.
func (m *model) checkQuestions(e *engine.Engine, ns interlock.Namespace) error {
	l := engine.LeaseQuestions{Namespace: ns, Limit: 1000}
	for !l.Look(e) {
	}
	var list []*request
	for _, r := range m.requests {
		if r.ns == ns && r.asksHuman() {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *request) int {
		if a.parkedAt != b.parkedAt {
			return int(a.parkedAt.Sub(b.parkedAt))
		}
		return int(a.num) - int(b.num)
	})
	if len(l.Rows) != len(list) {
		return fmt.Errorf("%d parked leases ask, want %v", len(l.Rows), list)
	}
	for i, r := range list {
		q := &l.Rows[i]
		if q.Fence != r.parkFence || q.Question != r.question || q.Agent != m.agentOf(r) ||
			q.Parking.Since != m.now.Sub(r.parkedAt) || q.Parking.Freed != r.freed || q.Decision != nil {
			return fmt.Errorf("%v asks %+v", r, q)
		}
	}
	return nil
}

// permitPutBack: abandoning a resumption, for whatever reason, parks the lease again for the
// rest of its time.
func (m *model) permitPutBack(cmd engine.Command, r *request, ev *record.Event) error {
	if r != nil && r.staysPut && r.phase == held {
		if ev.Freed || ev.Reason != record.ByLeaving || ev.TTL != max(0, r.parkUntil.Sub(m.now)) {
			return fmt.Errorf("%v is parked again for %v", r, ev.TTL)
		}
		return m.permitEnd(cmd, ev)
	}
	if r == nil || !r.goesBack || !ev.Freed || ev.TTL != max(0, r.parkEnd.lo.Sub(m.now)) {
		return fmt.Errorf("%v is parked again for %v", r, ev.TTL)
	}
	switch r.phase {
	case waiting:
		return m.permitLeaving(cmd, ev)
	case held:
		if ev.Reason != record.ByLeaving {
			return fmt.Errorf("%v is held, and %v is no reason to park it again", r, ev.Reason)
		}
	}
	return m.permitEnd(cmd, ev)
}

// putBack parks a lease again after its resumption was abandoned. Its own writes do not count
// as changes.
func (m *model) putBack(r *request, ev *record.Event) {
	if r.staysPut {
		m.putBackKept(r, ev)
		return
	}
	m.asks = slices.DeleteFunc(m.asks, func(a yieldAsk) bool { return a.by == r }) // it asks no more
	if ev.Reason == record.ByDeadlock {
		m.victims = append(m.victims, r.party())
	}
	if r.holds() {
		for i := range m.writes { // while it held them, only its own flow wrote its keys
			if m.writes[i].at > r.handedAt {
				m.writes[i].by = r
			}
		}
		m.writes = append(m.writes, write{r.ns, r.claims, m.events, r})
	}
	if r.phase == held {
		r.heldBefore += m.now.Sub(r.heldFrom)
	}
	r.ask.TTL, r.ask.Agent, r.ask.Actor = r.ttl(), m.agentOf(r), r.ownerOf()
	r.session, r.ask.Flow, r.attached = nil, "", nil
	r.phase, r.freed, r.goesBack, r.why = parked, true, false, ev.Reason
	r.parkFence = ev.Fence
}

// putBackKept is putBack of a lease that keeps its keys.
func (m *model) putBackKept(r *request, ev *record.Event) {
	m.breaks(r, ev.Reason)
	r.ask.TTL, r.ask.Agent, r.ask.Actor = r.ttl(), m.agentOf(r), r.ownerOf()
	r.session, r.ask.Flow, r.attached = nil, "", nil
	r.phase, r.freed, r.staysPut, r.why = parked, false, false, ev.Reason
	r.parkedAt, r.parkFence, r.parkUntil = m.now, ev.Fence, m.now.Add(ev.TTL)
	r.heldBefore += m.now.Sub(r.heldFrom)
	r.heldFrom, r.queuedAt = m.now, m.events
	r.setParkEnd()
}

// resumed returns a parked lease as it would be after its resumption.
func (m *model) resumed(lease *request, c *engine.Resume) *request {
	r := *lease
	r.phase, r.lead, r.since, r.why = 0, false, m.now, 0
	r.ask.OnConflict, r.ask.MaxWait, r.ask.Attach = c.OnConflict, c.MaxWait, c.Attach
	r.session, r.ask.Flow, r.ask.Actor = m.sessionByID(c.Namespace, c.Session), c.Flow, c.Actor
	switch {
	case r.session == nil:
		r.ask.Flow = ""
	case c.Flow == "":
		r.ask.Flow = "main"
	}
	m.boundWait(&r)
	r.lead = m.leads(&r)
	return &r
}

// freeAgain reports whether a parked lease may be held again: its keys were kept, or
// they are free for it.
func (m *model) freeAgain(lease, r *request) bool {
	if !lease.freed {
		return true
	}
	rest := *m
	rest.requests = slices.DeleteFunc(slices.Clone(m.requests), func(q *request) bool { return q == lease })
	return rest.free(r)
}

func (m *model) expectResume(c *engine.Resume) answer {
	if !c.Session.IsZero() {
		if s := m.sessionByID(c.Namespace, c.Session); s == nil {
			return refusalKey(interlock.CodeUnknownSession)
		} else if s.ended {
			return refusalKey(interlock.CodeSessionEnded)
		}
	}
	lease := m.byID(c.Namespace, c.Lease)
	switch {
	case lease != nil && lease.base != nil && lease.phase == over:
		return answer{} // the report of a conversion's ticket is not specified
	case lease != nil && (lease.phase == over || lease.phase == closed):
		return refusalKey(append(
			gone(lease.subject()), interlock.CodeUnknownLease, interlock.CodeUnknownTicket, interlock.CodeNotParked,
		)...)
	case lease == nil || lease.fence == 0:
		return refusalKey(interlock.CodeUnknownLease, interlock.CodeNotParked)
	case lease.phase != parked:
		return refusalKey(interlock.CodeNotParked, interlock.CodeUnknownLease)
	case c.MaxWait < 0 || c.MaxWait > interlock.MaxMaxWait:
		return refusalKey(interlock.CodeInvalidTTL)
	}
	if codes := m.notFor(&c.Head, lease, lease.claims); len(codes) > 0 {
		return refusalKey(codes...)
	}
	if want, ok := m.expectAnswered(c, lease); ok {
		return want
	}
	r := m.resumed(lease, c)
	if code := m.outOfOrder(r); code != "" {
		return refusalKey(code)
	}
	switch {
	case lease.freed && m.neverServed(r):
		return refusalKey(interlock.CodeTooManyPermits)
	case m.freeAgain(lease, r):
		return answer{outcome: engine.Granted, about: lease}
	case m.atBest().freeAgain(lease, r):
		return answer{}
	case c.OnConflict == interlock.Fail:
		return refusalKey(m.refusals(r)...)
	}
	return answer{outcome: engine.Queued, about: lease, again: true}
}

func (m *model) permitResumption(cmd engine.Command, ev *record.Event) error {
	c, ok := cmd.(*engine.Resume)
	lease := m.subjectOf(ev)
	if !ok || lease == nil || lease.phase != parked || c.Lease != interlock.LeaseID(lease.ask.ID) {
		return fmt.Errorf("nobody resumes %v", lease)
	}
	if !m.mayResume(c, lease) {
		return fmt.Errorf("%v is resumed, and nobody approved it", lease)
	}
	r := m.resumed(lease, c)
	switch free, may := m.freeAgain(lease, r), m.atBest().freeAgain(lease, r); {
	case free && ev.Queued, !may && !ev.Queued:
		return fmt.Errorf("%v resumed: in line %v, free %v", lease, ev.Queued, free)
	case !ev.Queued:
		return m.permitFence(ev.Fence)
	case c.OnConflict == interlock.Fail:
		return errors.New("it was not to wait")
	}
	return nil
}

// resume takes in that a lease is held again, or stands in line.
func (m *model) resume(c *engine.Resume, ev *record.Event) {
	lease := m.subjectOf(ev)
	kept := !lease.freed
	r := m.resumed(lease, c)
	*lease = *r
	if lease.freed = false; kept {
		lease.heldBefore += m.now.Sub(lease.heldFrom)
	}
	lease.staysPut = kept
	if lease.goesBack = !kept; ev.Queued {
		lease.phase, lease.lapse = waiting, at(m.now.Add(interlock.BareTicketTTL))
		lease.attached, lease.link = c.From, c.Link
		for _, q := range m.mustAsk(lease) {
			m.due = append(m.due, yieldAsk{q, lease})
		}
		return
	}
	lease.changed, lease.moved = m.changedMeanwhile(lease, false), m.movedMeanwhile(lease)
	lease.unsure = lease.unsure || m.changedMeanwhile(lease, true)
	m.handOver(lease)
	if kept {
		lease.phase, lease.fence, lease.beat, lease.progress, m.fence = held, ev.Fence, at(m.now), at(m.now), ev.Fence
		lease.granted, lease.heldFrom, lease.said, lease.unknown = m.now, m.now, "", false
		if lease.session != nil {
			lease.said = lease.session.said
		}
		return
	}
	m.hand(lease, held, ev.Fence)
}

// movedMeanwhile returns the keys that others may have written while r was away.
func (m *model) movedMeanwhile(r *request) (keys []interlock.Key) {
	for _, c := range r.claims {
		one := *r
		one.claims = []interlock.Claim{c}
		if m.changedMeanwhile(&one, false) {
			keys = append(keys, c.Key)
		}
	}
	return keys
}
