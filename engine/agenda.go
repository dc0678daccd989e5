package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// agendaOf returns the agenda on which a command in a namespace works.
func (e *Engine) agendaOf(name interlock.Namespace) *store.PendingWork {
	if name == "" {
		return &e.Whole
	}
	if s := e.PendingWork.NS; s != nil && s.Name == name { // as in the step before
		return e.PendingWork
	}
	if s := e.Namespaces[name]; s != nil {
		return s.Agenda
	}
	return e.NewAgenda(nil)
}

// begin enters the namespace of a command, and fires the timers that are due by its time.
func (e *Engine) begin(h *Head) {
	if h.Namespace == "" {
		e.enter(&e.Whole, h.At)
		e.pass(h.At)
		return
	}
	e.enter(e.agendaOf(h.Namespace), h.At)
	if e.Live && !e.isMoving() {
		e.expire()
		e.settle()
	}
}

// finish carries out the follow-up work of a command.
func (e *Engine) finish() {
	if e.PendingWork != &e.Whole && !e.isMoving() {
		e.settle()
		e.rearm()
	}
}

// pass fires the timers that are due by a time in any namespace, as many as one step may.
func (e *Engine) pass(at store.Time) {
	for e.Live && !e.full() && !e.Looks.IsSpent() && !e.Ranks.IsSpent() && !e.tryBudgetSpent() {
		alarm := e.Alarms.First()
		if alarm == nil || alarm.At > at {
			break
		}
		e.enter(alarm.Agenda, e.Whole.Clock)
		e.expire()
		e.settle()
		e.rearm()
		e.watchEmpty(alarm.Agenda.NS)
	}
	e.PendingWork = &e.Whole
}

// enter turns to an agenda, at a time.
func (e *Engine) enter(a *store.PendingWork, at store.Time) {
	e.PendingWork = a
	a.Clock = max(a.Clock, at)
	e.newest = max(e.newest, a.Clock)
}

// rearm sets the agenda's alarm to the earliest time with work left.
func (e *Engine) rearm() {
	at, ok := e.PendingWork.NextDue(e.draining)
	switch alarm := &e.PendingWork.Alarm; {
	case !ok:
		e.Alarms.Clear(alarm)
	case alarm.Pos < 0 || alarm.At != at:
		e.Alarms.Set(alarm, at)
	}
}

// NextTimer returns when the next Tick is due in any namespace; ok is false when none
// is.
func (e *Engine) NextTimer() (at store.Time, ok bool) {
	if t := e.Alarms.First(); t != nil {
		return t.At, true
	}
	return 0, false
}

// DueBy calls visit for each namespace in which something is due by a time. The
// order is no promise.
func (e *Engine) DueBy(at store.Time, visit func(interlock.Namespace)) {
	e.Alarms.Until(at, 0, func(t *store.Timer) { visit(t.Agenda.NS.Name) })
}

// Due returns when the next Tick is due in a namespace; ok is false when none is.
func (e *Engine) Due(name interlock.Namespace) (at store.Time, ok bool) {
	if s := e.Namespaces[name]; s != nil && s.Agenda.Alarm.Pos >= 0 {
		return s.Agenda.Alarm.At, true
	}
	return 0, false
}
