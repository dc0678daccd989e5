package engine_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// push is an effect for a caller other than the command's, or a second one for that caller.
type push struct {
	to      engine.Caller
	outcome interlock.Outcome
	about   *request
	must    bool // otherwise it may also be left out
	told    bool
	at      moment  // of the event
	then    request // about, as of the event
}

// observe follows one step of the engine: it judges every event by the state in which it
// happened, then the answer and the pushes, then what must hold between steps. Timers that are
// due by the time of a command fire before the command is carried out, so its answer is
// expected from the state after that.
//
// So it is with what the step before left over, such as a search for a deadlock: early counts
// the events that the engine had made when it came to the command.
func (m *model) observe(cmd engine.Command, out *engine.Output, early int) error {
	head := cmd.Header()
	m.now, m.cmd, m.coming, m.committing = head.At, cmd, nil, 0
	m.parted = nil
	m.asking, m.dismissed, m.endings, m.unfollowed, m.handing, m.sacrificed = nil, nil, nil, nil, nil, nil
	m.rank()
	m.ranked = m.ranks
	if _, ok := cmd.(*engine.Recover); ok { // a new term has no listeners
		for _, s := range m.sessions {
			s.receiver = nil
		}
		for _, r := range m.requests {
			r.attached, r.hearers = nil, nil
		}
		m.forgetWork()
	}
	m.rest()
	if r := m.made(cmd, m.highestNum()+1); r != nil {
		if _, ok := r.barrier(); ok {
			m.coming = r
		}
	}
	defer func() { m.coming = nil }()
	var want answer
	var known, expected bool
	var pushes []*push
	expect := func() {
		before := m.known(cmd)
		want, known, expected = m.expect(cmd), before != nil, true
		m.listens(cmd, before, want)
	}
	victims, _ := m.sacrifice(m.victimsAmong(out.Effects))
	for i := range out.Events {
		ev := &out.Events[i]
		before := m.byTime(ev)
		if m.unfinished {
			before = i < early
		}
		if !before && !expected {
			expect()
			victims, _ = m.sacrifice(victims)
		}
		if err := m.permit(cmd, ev); err != nil {
			return fmt.Errorf("event %v of request %d, session %d: %w", ev.Kind, ev.Num, ev.Session, err)
		}
		told := m.pushesFor(cmd, ev)
		m.fold(cmd, ev)
		for _, p := range told {
			if p.outcome == engine.Granted {
				p.at, p.then = m.moment(p.about), *p.about
			}
		}
		pushes = append(pushes, told...)
		victims, _ = m.sacrifice(victims)
	}
	if !expected {
		expect()
	}
	if victims, notYet := m.sacrifice(victims); len(victims) > 0 {
		return fmt.Errorf("a wait for the end of a task is refused: %w", notYet)
	}
	for _, d := range m.due {
		// not after a conversion in the same step
		inTheWay := d.lease.phase == held && m.inTheWay(d.lease, d.by, d.by.wants())
		if d.by.phase == waiting && inTheWay && !slices.Contains(m.asks, d) {
			return fmt.Errorf("%v was not asked to yield to %v", d.lease, d.by)
		}
	}
	m.due, m.victims, m.forfeits = nil, nil, nil
	if err := m.checkBarriers(); err != nil {
		return err
	}
	if err := m.checkRemembered(cmd, known, out); err != nil {
		return err
	}
	effects := slices.DeleteFunc(
		slices.Clone(out.Effects), func(e engine.Effect) bool { return e.Outcome == engine.Warned },
	)
	for i := range out.Effects {
		if e := &out.Effects[i]; e.Outcome == engine.Warned {
			if err := m.checkWarning(e); err != nil {
				return err
			}
		}
	}
	var first *engine.Effect
	if head.From != nil && !want.none {
		i := slices.IndexFunc(effects, func(e engine.Effect) bool {
			return e.To == head.From && e.Outcome != engine.Lost
		})
		if i < 0 {
			return errors.New("the caller got no answer")
		}
		told := effects[i]
		first, effects = &told, slices.Delete(effects, i, i+1)
	}
	if first != nil && first.Outcome == engine.Refused && first.Code == interlock.CodeUnsupported {
		want = answer{} // the model is ahead of the engine
	}
	if first != nil {
		if err := m.heard(cmd, first); err != nil {
			return err
		}
		if err := m.checkAnswer(cmd, want, first); err != nil {
			return err
		}
	}
	if err := m.checkAudit(cmd, known, first, out); err != nil {
		return err
	}
	effects, err := m.checkFarewells(effects)
	if err != nil {
		return err
	}
	pushes = append(pushes, m.parted...)
	m.forget(cmd)
	m.rest()
	m.settle()
	effects, err = m.checkWork(effects)
	if err != nil {
		return err
	}
	for _, p := range pushes {
		// A wait that was over in its own step needs one answer only.
		forfeit := p.outcome == engine.Granted && p.about.why == record.ByDeadlock && p.about.phase == over &&
			p.about.ended == m.now
		if first != nil && p.to == head.From && (p.outcome == first.Outcome && p.outcome != engine.Lost || forfeit) {
			p.told = true
		}
	}
	return m.checkPushes(pushes, effects)
}

// byTime reports whether time alone brought ev about.
func (m *model) byTime(ev *record.Event) bool {
	switch ev.Kind {
	case record.TaskDispatched:
		c, ok := m.cmd.(*engine.Pull)
		return !ok || !slices.Contains(c.Leases, ev.ID)
	case record.AttemptFailed:
		return ev.Reason != record.ByNack
	case record.ApprovalDecided:
		return ev.Agent == interlock.ByPolicy
	case record.TaskMoved:
		t := m.task(ev.Namespace, ev.ID)
		switch interlock.TaskState(ev.Op) {
		case interlock.TaskDead:
			return ev.Reason == 0
		case interlock.TaskWaiting:
			return t.state == interlock.TaskScheduled && t.due <= m.now
		}
		return false
	}
	switch ev.Reason {
	case record.ByFull:
		limit, limited := m.subjectOf(ev).waitEnd()
		return limited && limit.mayBeDue(m.now)
	case record.ByPreemption, record.ByDeadlock:
		r := m.subjectOf(ev)
		return r != nil && r.phase == inGrace
	case record.ByTTL, record.ByMaxHold, record.ByStall, record.ByDeath, record.ByLapse, record.ByWaitLimit,
		record.ByForgetting, record.ByParking, record.ByBase, record.ByBreak, record.ByTarget, record.ByPattern:
		return ev.RequestID == ""
	}
	return false
}

// pushesFor returns the pushes that ev brings with it, from the state before it.
func (m *model) pushesFor(cmd engine.Command, ev *record.Event) (list []*push) {
	if s := m.sessionByNum(ev.Session); ev.Part && ev.Kind == record.Granted && s != nil && s.receiver != nil {
		// a push informs a member of a new part
		return []*push{{to: s.receiver, outcome: engine.Granted, about: m.newPart(ev)}}
	}
	r := m.subjectOf(ev)
	if r == nil {
		return nil
	}
	if list = r.woken(ev); len(list) > 0 {
		return list
	}
	if r.member != nil {
		defer func() {
			for _, p := range list {
				p.must = false // the push about the member's lease has the parts that it must stop, too
			}
		}()
	}
	switch ev.Kind {
	case record.Admitted:
		if to := m.listener(r); to != nil && !ev.Offer {
			about := r
			if r.base != nil {
				about = r.base
			}
			list = append(list, &push{to: to, outcome: engine.Granted, about: about, must: true})
		}
	case record.YieldRequested:
		first, by := m.yield(r), m.byNum(ev.By)
		if by != nil && r.session != nil && r.session.receiver != nil {
			news := first == nil || by.ask.Priority > first.ask.Priority
			list = append(list, &push{to: r.session.receiver, outcome: engine.Asked, about: r, must: news})
		}
	case record.Queued:
	case record.Claimed:
		if _, ok := cmd.(*engine.Attach); ok {
			list = append(list, &push{to: cmd.Header().From, outcome: engine.Granted, about: r, must: true})
		}
	case record.Left, record.Parked:
		if r.phase != waiting {
			break
		}
		if r.attached != nil && (ev.Reason != record.ByFull || m.byTime(ev)) {
			// The victim of its own request may get the refusal as its only answer.
			own := r.attached == cmd.Header().From && ev.Reason == record.ByDeadlock
			list = append(list, &push{to: r.attached, outcome: engine.Refused, about: r, must: !own})
		} else if r.session != nil && r.session.receiver != nil {
			list = append(list, &push{to: r.session.receiver, outcome: engine.Refused, about: r})
		}
	case record.Grace, record.Closed, record.Ended:
		if r.phase == waiting && r.attached != nil {
			list = append(list, &push{to: r.attached, outcome: engine.Refused, about: r, must: true})
		}
		if r.session == nil || r.session.receiver == nil {
			break
		}
		switch ev.Reason {
		case record.ByTTL, record.ByMaxHold, record.ByStall, record.ByRevocation, record.ByPreemption, record.ByDeadlock,
			record.ByForgetting, record.ByTakeOver:
			list = append(list, &push{to: r.session.receiver, outcome: engine.Lost, about: r, must: r.phase != closed})
		case record.ByDeath, record.ByLapse, record.BySession:
			list = append(list, &push{to: r.session.receiver, outcome: engine.Lost, about: r})
		}
	}
	return list
}

func (m *model) checkPushes(due []*push, effects []engine.Effect) error {
	for i := range effects {
		got := &effects[i]
		if got.To == nil {
			continue
		}
		k := slices.IndexFunc(due, func(p *push) bool {
			id := got.Ticket.ID
			if got.Outcome != engine.Refused {
				id = interlock.TicketID(got.Lease.ID)
			}
			return !p.told && p.to == got.To && p.outcome == got.Outcome &&
				(id == interlock.TicketID(p.about.ask.ID) || id.IsZero())
		})
		if k < 0 {
			return fmt.Errorf("%v was told %s, which does not concern it", got.To, effectText(got))
		}
		due[k].told = true
		if got.Outcome == engine.Granted && due[k].about.phase == held {
			// The command may have changed the lease since, in the same step.
			err := m.checkLeaseAt(due[k].at, due[k].about, &got.Lease)
			if err != nil && m.checkLeaseAt(due[k].at, &due[k].then, &got.Lease) != nil {
				return err
			}
		}
	}
	for _, p := range due {
		if p.outcome == engine.Asked && p.about.phase != held { // its loss, or its grace, is reported instead
			continue
		}
		if p.must && !p.told {
			return fmt.Errorf("%v was not told %v about %v", p.to, p.outcome, p.about)
		}
	}
	return nil
}

// checkWarning: a warning goes to the receiver of a lease that has at most a third of its time
// left.
func (m *model) checkWarning(got *engine.Effect) error {
	for _, r := range m.requests {
		if interlock.LeaseID(r.ask.ID) != got.Lease.ID || r.fence == 0 {
			continue
		}
		if r.phase != held && r.ended == m.now {
			return nil // its soft and its hard end were due at once
		}
		soft := r.softFrom()
		if r.session == nil || r.session.receiver != got.To || !soft.mayBeDue(m.now) {
			return fmt.Errorf("a warning without reason for %v: %v", r, effectText(got))
		}
		return nil
	}
	return fmt.Errorf("a warning for what is not held: %v", effectText(got))
}
