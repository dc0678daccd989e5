package engine_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// permit reports whether ev may happen now, as part of carrying out cmd. It judges
// by the state before ev.
func (m *model) permit(cmd engine.Command, ev *record.Event) error {
	if ev.At != m.now {
		return fmt.Errorf("it is dated %d, but it is %d", ev.At, m.now)
	}
	wanted := cmd.Header().RequestID
	if actor := cmd.Header().Actor; actor != "" {
		wanted = actor + "\x00" + wanted // an id is its principal's own
	}
	if ev.RequestID != "" && ev.RequestID != wanted || ev.Seq != 0 && ev.Seq != cmd.Header().Seq {
		return fmt.Errorf("it answers the request id %s %d, which is not that of the command", ev.RequestID, ev.Seq)
	}
	switch ev.Kind {
	case record.Opened:
		rec, ok := cmd.(*engine.Recover)
		switch {
		case !ok:
			return errors.New("no term begins here")
		case ev.Epoch != rec.Epoch:
			return fmt.Errorf("want epoch %d, got %d", rec.Epoch, ev.Epoch)
		case ev.Fence < m.fence+interlock.Fence(rec.FenceJump):
			return fmt.Errorf("fences must be above %d after a jump of %d, got %d", m.fence, rec.FenceJump, ev.Fence)
		case m.last > 0 && ev.Idle != ev.At.Sub(m.last):
			return fmt.Errorf("nothing happened for %v before this term, not %v", ev.At.Sub(m.last), ev.Idle)
		case ev.Version < m.base || rec.FenceJump == 0 && ev.Version != m.base:
			return fmt.Errorf("versions must be above %d as before, got %d", m.base, ev.Version)
		case slices.ContainsFunc(m.written, func(w written) bool {
			return rec.FenceJump > 0 && ev.Version < w.doc.Version+interlock.Version(rec.FenceJump)
		}):
			return fmt.Errorf("versions must jump by %d above all that were given out, got %d", rec.FenceJump, ev.Version)
		}
	case record.SessionOpened:
		open, ok := cmd.(*engine.OpenSession)
		if !ok || ev.Agent != open.Agent || ev.Any != (open.TTL == 0) || m.sessionByNum(ev.Session) != nil {
			return errors.New("nobody opened that session so, or its number was used before")
		}
	case record.SessionEnded:
		return m.permitSessionEnd(cmd, ev)
	case record.Queued, record.Granted:
		if ev.Part {
			return m.permitPart(ev)
		}
		return m.permitRequest(cmd, ev)
	case record.Admitted:
		return m.permitAdmission(ev)
	case record.Claimed:
		r := m.subjectOf(ev)
		if r == nil || r.phase != offered {
			return fmt.Errorf("there is no such offer: %v", r)
		}
		if !m.asksFor(cmd, r) {
			return fmt.Errorf("nobody asked for the offer to %v", r)
		}
	case record.Grace:
		return m.permitGrace(ev)
	case record.Ended:
		return m.permitEnd(cmd, ev)
	case record.Parked:
		return m.permitParking(cmd, ev)
	case record.Resumed:
		return m.permitResumption(cmd, ev)
	case record.Decided:
		return m.permitDecision(cmd, ev)
	case record.YieldRequested:
		return m.permitAsking(cmd, ev)
	case record.Closed:
		return m.permitClose(cmd, ev)
	case record.Left:
		return m.permitLeaving(cmd, ev)
	case record.PatternSet, record.PatternDropped, record.Configured:
		return m.permitRules(cmd, ev)
	case record.Converted:
		return m.permitConversion(cmd, ev)
	case record.TTLChanged:
		c, ok := cmd.(*engine.Renew)
		r := m.subjectOf(ev)
		if !ok || r == nil || c.Lease != interlock.LeaseID(r.ask.ID) || r.phase != held || r.member != nil {
			return errors.New("nobody renews that lease")
		}
		if want := m.renewedTTL(r, c.TTL); ev.TTL != want || want == r.ttl() || ev.Fence != r.fence {
			return fmt.Errorf("the ttl of %v becomes %v, it was %v and should be %v", r, ev.TTL, r.ttl(), want)
		}
	case record.EffectChanged:
		return m.permitDeed(cmd, ev)
	case record.EffectsForgotten:
		return m.permitForgotten(cmd, ev)
	case record.Written:
		return m.permitWritten(cmd, ev)
	case record.QueueSet, record.QueueDropped:
		return m.permitQueue(cmd, ev)
	case record.WebhookSet, record.WebhookRotated, record.WebhookDeleted, record.WebhookDelivered:
		return m.permitWebhook(cmd, ev)
	case record.NamespaceDeleted:
		return m.permitDeletion(cmd, ev)
	case record.TaskSubmitted:
		return m.permitTask(cmd, ev)
	case record.TaskMoved:
		return m.permitStanding(cmd, ev)
	case record.AttemptFailed:
		return m.permitFailure(cmd, ev)
	case record.ApprovalRequested:
		return m.permitQuestion(cmd, ev)
	case record.ApprovalDecided:
		return m.permitVerdict(cmd, ev)
	case record.TaskDispatched:
		return m.permitHanding(cmd, ev)
	case record.TaskForgotten:
		c, ok := cmd.(*engine.ChangeTask)
		if t := m.task(ev.Namespace, ev.ID); !ok || t == nil || !t.isSettled() || c.Task != t.id ||
			c.Change != engine.DiscardTask {
			return fmt.Errorf("nobody discards %v", t)
		}
	case record.Answered:
		if cmd.Header().RequestID == "" && cmd.Header().Seq == 0 {
			return errors.New("the command has no request id")
		}
	case record.Refused: // judged with the answer, in checkAudit
	default:
		return errors.New("this kind belongs into snapshots only")
	}
	return nil
}

func (m *model) permitSessionEnd(cmd engine.Command, ev *record.Event) error {
	s := m.sessionByNum(ev.Session)
	switch {
	case s == nil || s.ended:
		return errors.New("there is no such session")
	case ev.Reason == record.BySession:
		if c, ok := cmd.(*engine.CloseSession); !ok || c.Session != s.id {
			return errors.New("nobody closed that session")
		}
	case ev.Reason == record.ByDeath:
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
func (m *model) permitRequest(cmd engine.Command, ev *record.Event) error {
	r := m.made(cmd, ev.Num)
	if r == nil {
		return errors.New("nobody asked for it")
	}
	if m.byNum(ev.Num) != nil {
		return fmt.Errorf("the number %d was used before", ev.Num)
	}
	if err := says(ev, r); err != nil {
		return err
	}
	if m.passed != nil { // its lease ended in this step for this one, before all that wait
		m.passed = nil
		if ev.Kind != record.Granted || !claimsSame(ev.Claims, r.claims) {
			return fmt.Errorf("%v takes a lease over, and is %v", r, ev.Kind)
		}
		return m.permitFence(ev.Fence)
	}
	_, party := r.barrier() // the last one stands in line, too, before all are admitted
	switch free, may := m.free(r), m.atBest().free(r); {
	case free && party && ev.Kind == record.Queued:
		return nil
	case r.base != nil && ev.Kind == record.Granted:
		return errors.New("what changes a lease makes no other one")
	case free && ev.Kind == record.Queued:
		return errors.New("nothing stands in its way")
	case !may && ev.Kind == record.Granted:
		return fmt.Errorf("it is not free: %v", m.blockers(r))
	case ev.Kind == record.Granted && r.ask.Any && !m.isFirst(r, ev.Claims):
		return fmt.Errorf("the first that is free of %s is not %s", claimsText(r.claims), claimsText(ev.Claims))
	case ev.Kind == record.Granted:
		return m.permitFence(ev.Fence)
	}
	return nil
}

// isFirst reports whether claims are the first alternative of r that is free.
func (m *model) isFirst(r *request, claims []interlock.Claim) bool {
	could := m.atBest().freeOnes(r)
	if sure := m.freeOnes(r); len(sure) > 0 {
		could = could[:slices.Index(could, sure[0])+1]
	}
	return len(claims) == 1 && slices.Contains(could, claims[0])
}

// says reports an error unless ev matches the request.
func says(ev *record.Event, r *request) error {
	var base uint64
	if r.base != nil {
		base = r.base.num
	}
	if org, workflow := ev.Run(); org != r.org || workflow != r.workflow {
		return fmt.Errorf("it is a run of %s %s, not of %s %s", org, workflow, r.org, r.workflow)
	}
	a := &r.ask
	if r.target != nil {
		if ev.ID != a.ID || ev.Target != r.target.session.num || ev.TargetFlow != r.target.flow || ev.MaxWait != a.MaxWait ||
			ev.Purpose != a.Purpose || (ev.Op == 0) == r.encloses() {
			return fmt.Errorf("it does not say what was declared by %v: %+v", r, ev)
		}
		return nil
	}
	one := a.Any && ev.Kind == record.Granted // of the alternatives, the one that it gets
	same := ev.ID == a.ID && (one || slices.Equal(ev.Claims, r.claims) && ev.Any == a.Any) && ev.Priority == a.Priority &&
		ev.Base == base &&
		ev.MaxWait == a.MaxWait && (ev.Kind == record.Granted || ev.Lead == r.lead)
	if r.base == nil {
		same = same && ev.TTL == r.ttl() && ev.Grace == a.Grace && ev.MaxHold == a.MaxHold && ev.Stall == a.Stall &&
			ev.LockDelay == a.LockDelay && ev.Purpose == a.Purpose && ev.Group == a.Group
	}
	if !same {
		return fmt.Errorf("it does not say what was asked for by %v: %+v", r, ev)
	}
	return nil
}

func (m *model) permitFence(f interlock.Fence) error {
	if f <= m.fence {
		return fmt.Errorf("fence %d is not above %d (I2)", f, m.fence)
	}
	return nil
}

func (m *model) permitAdmission(ev *record.Event) error {
	r := m.subjectOf(ev)
	if r == nil || r.phase != waiting {
		return fmt.Errorf("it does not wait: %v", r)
	}
	best := m.atBest()
	if !best.free(r) {
		return fmt.Errorf("%v is blocked by %v (I1, I5)", r, best.blockers(r))
	}
	if r.ask.Any && (len(ev.Claims) != 1 || !slices.Contains(best.freeOnes(r), ev.Claims[0])) {
		return fmt.Errorf("%v gets %s, which is not one of the free ones", r, claimsText(ev.Claims))
	}
	if r.session != nil && r.session.ended {
		return fmt.Errorf("%v is of a session that has ended (I4)", r)
	}
	if r.isRun() && r.since == 0 && m.listener(r) == nil {
		return fmt.Errorf("%v is admitted, and nobody listens", r)
	}
	if listens := m.listener(r) != nil || r.base != nil || r.member != nil; ev.Offer == listens {
		return fmt.Errorf("%v: offer=%v, somebody listens=%v", r, ev.Offer, listens)
	}
	if g := m.generation(r); ev.Generation != g {
		return fmt.Errorf("%v: generation %d, not %d", r, ev.Generation, g)
	}
	if ev.Waited != m.now.Sub(r.waitsSince()) {
		return fmt.Errorf("%v waited %v, not %v", r, m.now.Sub(r.waitsSince()), ev.Waited)
	}
	return m.permitFence(ev.Fence)
}

// listener returns the caller that a grant to r would reach, nil for none.
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
		again := m.made(c, 0) // a party of the same barrier
		_, party := r.barrier()
		if _, member := r.membership(); member {
			party = true
		}
		return known != nil && known.num == r.num || party && again.party() == r.party() && sameClaims(again.claims, r.claims)
	case *engine.StartRun, *engine.Resume: // as one that was answered before
		known := m.answerTo(cmd.Header())
		return known != nil && known.num == r.num
	case *engine.Attach:
		return r.session != nil && c.Session == r.session.id
	case *engine.Commit:
		return slices.Contains(c.Leases, interlock.LeaseID(r.ask.ID))
	case *engine.ClaimEffect:
		return c.Lease == interlock.LeaseID(r.ask.ID)
	case *engine.Renew:
		return c.Lease == interlock.LeaseID(r.ask.ID)
	}
	return false
}
