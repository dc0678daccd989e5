package engine_test

import (
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

func (m *model) permitGrace(ev *record.Event) error {
	r := m.subjectOf(ev)
	if r == nil || r.phase != held {
		return fmt.Errorf("it is not held: %v", r)
	}
	if r.ask.Grace <= 0 {
		return fmt.Errorf("%v has no grace", r)
	}
	switch {
	case ev.Reason == record.ByPreemption && r.member != nil && m.wanted(r):
		return nil
	case ev.Reason == record.ByPreemption:
		return m.permitPreemption(r)
	case ev.Reason == record.ByDeadlock:
		return m.permitForfeit(r)
	case r.member != nil && (ev.Reason != record.ByDeath || r.member.phase != over): // else it ends in the same step
		return fmt.Errorf("%v lives by its member", r)
	}
	return m.permitHardEnd(r, ev.Reason)
}

// permitHardEnd: a lease reaches its hard end because of a deadline.
func (m *model) permitHardEnd(r *request, why record.Reason) error {
	var end span
	switch why {
	case record.ByTTL, record.ByForgetting:
		if r.unknown != (why == record.ByForgetting) {
			return fmt.Errorf("the client of %v knows of it: %t", r, !r.unknown)
		}
		end = r.ttlEnd()
	case record.ByMaxHold:
		limit, ok := r.capEnd()
		if !ok {
			return fmt.Errorf("%v has no max_hold", r)
		}
		end = limit
	case record.ByStall:
		limit, ok := r.stallEnd()
		if !ok {
			return fmt.Errorf("%v has no stall", r)
		}
		end = limit
	case record.ByDeath:
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

// graceUpTo bounds the grace of a lease that was taken away: max_hold, had it ended the
// lease, would not have come later.
func (r *request) graceUpTo(end span, why record.Reason) span {
	if limit, ok := r.capEnd(); ok && (why == record.ByPreemption || why == record.ByDeadlock) {
		end = earlier(end, limit)
	}
	return end
}

// isClosed reports whether a session was closed, in this step or before: ending one with many
// objects takes several steps. The answer to the command is checked elsewhere.
func (s *session) isClosed() bool { return s != nil && s.ended && s.why == record.BySession }

func (m *model) permitEnd(cmd engine.Command, ev *record.Event) error {
	r := m.subjectOf(ev)
	if r == nil || !r.holds() && r.phase != parked && !(r.goesBack && ev.Reason == record.ByRelease) {
		return fmt.Errorf("it is no lease: %v", r)
	}
	if ev.Fence != r.fence {
		return fmt.Errorf("%v: fence %d", r, ev.Fence)
	}
	wrong := fmt.Errorf("%v: nobody gave a reason to end it by %v", r, ev.Reason)
	switch ev.Reason {
	case record.ByRelease, record.ByLeaving:
		switch c := cmd.(type) {
		case *engine.Release:
			if c.Lease == interlock.LeaseID(r.ask.ID) && c.Namespace == r.ns {
				return nil
			}
		case *engine.Leave:
			if c.Ticket == interlock.TicketID(r.ask.ID) && c.Namespace == r.ns {
				return nil
			}
		case *engine.Ack:
			if c.Lease == interlock.LeaseID(r.ask.ID) && c.Namespace == r.ns && r.task.state == interlock.TaskDone {
				return nil
			}
		}
		return wrong
	case record.ByNack:
		if c, ok := cmd.(*engine.Nack); !ok || c.Lease != interlock.LeaseID(r.ask.ID) || r.task.request == r {
			return wrong
		}
	case record.ByQuestion:
		if c, ok := cmd.(*engine.AskHuman); !ok || c.Lease != interlock.LeaseID(r.ask.ID) || r.task.request == r {
			return wrong
		}
	case record.ByRevocation:
		if c, ok := cmd.(*engine.Revoke); !ok || !m.revokedBy(c, r) {
			return wrong
		}
	case record.ByTakeOver:
		if c, ok := cmd.(*engine.Acquire); !ok || r != m.predecessor(c, m.made(c, m.highestNum()+1)) {
			return wrong
		}
	case record.BySession:
		if !r.session.isClosed() {
			return wrong
		}
	case record.ByBase:
		if r.member == nil || r.member.phase == held || r.member.phase == inGrace {
			return wrong
		}
	case record.ByParking:
		limit, ok := r.capEnd()
		if r.phase != parked || !r.parkEnd.mayBeDue(m.now) || !r.freed && ok && limit.mustBeDue(m.now) {
			return wrong
		}
	case record.ByLapse:
		if r.phase != offered || !r.lapse.mayBeDue(m.now) {
			return wrong
		}
	case record.ByTTL, record.ByForgetting, record.ByMaxHold, record.ByStall, record.ByDeath, record.ByPreemption,
		record.ByDeadlock:
		switch {
		case r.phase == closed:
			if ev.Reason != r.why || !r.opening.mayBeDue(m.now) {
				return fmt.Errorf("%v is closed by %v until %v, and it is %d", r, r.why, r.opening, m.now)
			}
		case r.phase == parked && (r.freed || ev.Reason != record.ByMaxHold):
			return wrong
		case r.ask.LockDelay > 0 && r.phase != offered && r.phase != parked && ev.Kind == record.Ended && isDeath(ev.Reason):
			return fmt.Errorf("%v ends without its lock_delay", r)
		case r.phase == inGrace:
			if ev.Reason != r.why || !r.graceTo.mayBeDue(m.now) {
				return fmt.Errorf("%v is in grace by %v until %v, and it is %d (I8)", r, r.why, r.graceTo, m.now)
			}
		case r.ask.Grace > 0 && r.phase == held:
			return fmt.Errorf("%v ends without its grace", r)
		case ev.Reason == record.ByPreemption && r.member != nil && m.wanted(r):
		case ev.Reason == record.ByPreemption:
			return m.permitPreemption(r)
		case ev.Reason == record.ByDeadlock:
			return m.permitForfeit(r)
		default:
			return m.permitHardEnd(r, ev.Reason)
		}
	default:
		return wrong
	}
	return nil
}

// permitClose: a lease is over by its holder's death, and its keys stay shut.
func (m *model) permitClose(cmd engine.Command, ev *record.Event) error {
	r := m.subjectOf(ev)
	switch {
	case r == nil || r.phase == closed || r.phase == offered: // an offer was never handed over
		return fmt.Errorf("it is no lease: %v", r)
	case r.ask.LockDelay == 0 || ev.LockDelay != r.ask.LockDelay:
		return fmt.Errorf("%v has a lock_delay of %v", r, r.ask.LockDelay)
	case !isDeath(ev.Reason):
		return fmt.Errorf("%v is no death", ev.Reason)
	}
	return m.permitEnd(cmd, ev)
}

// isDeath reports whether a lease ends because its holder gave no sign of life, or
// none of progress.
func isDeath(why record.Reason) bool {
	return why == record.ByTTL || why == record.ByMaxHold || why == record.ByStall || why == record.ByDeath ||
		why == record.ByForgetting
}

func (m *model) permitLeaving(cmd engine.Command, ev *record.Event) error {
	r := m.subjectOf(ev)
	if r == nil || r.phase != waiting {
		return fmt.Errorf("it does not wait: %v", r)
	}
	wrong := fmt.Errorf("%v: nobody gave a reason to leave by %v", r, ev.Reason)
	if r.member != nil {
		return nil // the part is to go elsewhere; checkParts sees where
	}
	switch ev.Reason {
	case record.ByLeaving:
		if r.base != nil && r.base.phase == parked {
			return nil // its lease was put back in this step
		}
		switch c := cmd.(type) {
		case *engine.Leave:
			if c.Ticket == interlock.TicketID(r.ask.ID) && c.Namespace == r.ns {
				return nil
			}
		case *engine.Park:
			if r.base != nil && c.Lease == interlock.LeaseID(r.base.ask.ID) && c.Namespace == r.ns {
				return nil
			}
		case *engine.Convert: // another conversion takes its place
			if r.base != nil && c.Lease == interlock.LeaseID(r.base.ask.ID) && c.Namespace == r.ns {
				return nil
			}
		}
		return wrong
	case record.BySession:
		if !r.session.isClosed() {
			return wrong
		}
	case record.ByDeath:
		if r.session == nil || !r.session.ended && !r.session.deadline().mayBeDue(m.now) {
			return wrong
		}
	case record.ByLapse:
		if r.session != nil || r.attached != nil || !r.lapse.mayBeDue(m.now) {
			return wrong
		}
	case record.ByDeadlock:
		return m.permitVictim(r, ev.Cycle)
	case record.ByFull:
		return m.permitFull(cmd, r)
	case record.ByWaitLimit:
		if limit, ok := r.waitEnd(); !ok || r.isToStart() || !limit.mayBeDue(m.now) {
			return wrong
		}
	case record.ByPattern:
		if !m.neverServed(r) {
			return wrong
		}
	case record.ByTarget:
		if r.target == nil || !r.target.session.ended {
			return wrong
		}
	case record.ByBreak:
		return m.permitBreak(r, ev)
	case record.ByBase:
		if r.base == nil || r.base.phase == held {
			return wrong
		}
	default:
		return wrong
	}
	return nil
}
