package engine_test

import (
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// between checks the invariants between steps. settled means that the timers were served up to
// now.
func (m *model) between(settled bool) error {
	active := m.inPhase(offered, held, inGrace)
	holding := m.holding()
	for i, a := range holding {
		for _, b := range holding[:i] {
			if conflict(a, b) && a.holder() != b.holder() {
				return fmt.Errorf("%v and %v exclude each other (I1)", a, b)
			}
		}
	}
	if err := m.checkPermits(); err != nil {
		return err
	}
	if err := m.checkParts(); err != nil {
		return err
	}
	for _, r := range m.inPhase(waiting) {
		if r.task == nil && m.free(r) {
			return fmt.Errorf("%v was left waiting, and nothing blocks it (I4)", r)
		}
		if r.session != nil && r.session.ended {
			return fmt.Errorf("%v is of a session that has ended", r)
		}
		if r.target != nil && r.target.session.ended {
			return fmt.Errorf("%v was left waiting for a session that has ended", r)
		}
		if r.base != nil && r.base.phase != held {
			return fmt.Errorf("%v was left waiting, and its lease is no longer held", r)
		}
	}
	if err := m.checkTasks(); err != nil {
		return err
	}
	if stuck := m.atBest().stuck(); len(stuck) > 0 && !m.searching {
		return fmt.Errorf("nothing can ever serve %v (I6)", stuck)
	}
	for _, r := range active {
		if r.session != nil && r.session.ended && r.phase != inGrace && r.member == nil {
			return fmt.Errorf("%v is of a session that has ended", r)
		}
	}
	if settled {
		if what, end := m.nextDue(); what != nil && end <= m.now {
			return fmt.Errorf("%v should have come to its next deadline at %d, and it is %d (I8)", what, end, m.now)
		}
	}
	return nil
}

// nextDue returns the next thing that time must end, and when at the latest.
func (m *model) nextDue() (what any, end engine.Time) {
	note := func(w any, s span) {
		if what == nil || s.hi < end {
			what, end = w, s.hi
		}
	}
	for _, s := range m.sessions {
		if !s.ended {
			note(fmt.Sprintf("session %s", s.agent), s.deadline())
		}
	}
	for _, r := range m.requests {
		switch {
		case r.phase == held && r.member == nil:
			note(r, r.hardEnd())
		case r.phase == inGrace:
			note(r, r.graceTo)
		case r.phase == parked:
			note(r, r.parkEnd)
		case r.phase == closed:
			note(r, r.opening)
		case r.phase == offered,
			r.phase == waiting && r.session == nil && r.attached == nil && r.member == nil && r.task == nil:
			note(r, r.lapse)
		}
		if limit, ok := r.waitEnd(); ok && r.phase == waiting {
			note(r, limit)
		}
	}
	for _, t := range m.tasks {
		if t.state == interlock.TaskScheduled {
			note(t, at(t.due))
		}
		if t.state == interlock.TaskAsking {
			if end, ok := t.question.until(); ok {
				note(t, at(end))
			}
		}
		if t.deadline != 0 && !t.isSettled() && t.state != interlock.TaskRunning {
			note(t, at(t.deadline))
		}
	}
	return what, end
}
