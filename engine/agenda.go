package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
)

// pendingWork is the pending work of one namespace: its deadlines, and the work that a step has left
// over because it had decided enough. Any work that a step may leave over belongs in here.
//
// Each namespace has its own because nothing crosses namespaces. Its time is that of its own
// commands, so a shard may reorder the commands of different namespaces as long as it keeps the
// order within each: a heartbeat that is delayed behind another namespace's commands still
// counts as on time. A step works on one agenda only, so no command pays for the work of
// another tenant.
//
// It is volatile. The engine embeds the one that it works on.
type pendingWork struct {
	ns        *namespace // nil when there is none yet
	now       Time       // of the last command in the namespace
	timers    timers
	ready     collection.ValueHeap[candidate] // watched waiters that a change may have helped
	suspects  collection.Queue[suspect]       // flows or waiters with new edges that may have closed a cycle
	search    *search                         // for the cycle of one of them, if it is not done
	dying     collection.Queue[*session]      // ended sessions with leases or waits left
	dismissed collection.Queue[dismissal]     // idle workers to be dismissed, with the reason
	departed  collection.Queue[*session]      // ended sessions with pulls, or waits for the ends of tasks, left
	parting   collection.Queue[*session]      // with waits that were attached over a connection that has ended
	uneven    []*partition                    // partitioned keys with a division to check
	broken    []brokenBarrier                 // waiters for a barrier that was broken; never left over
	hungry    []*queue                        // with workers, and tasks that could run
	doubt     suspectScan                     // the remaining suspects, while not all flows that may be on a cycle are listed
	alarm     timer                           // in Engine.alarms: when the first of all this is due
	empty     timer                           // in Engine.empty, if the namespace is empty

	objects *int // Engine.objects, for callers without an engine
}

func (e *State) newAgenda(s *namespace) *pendingWork {
	e.agendas++
	a := &pendingWork{ns: s, objects: &e.objects}
	a.alarm = timer{pos: -1, ord: e.agendas, agenda: a}
	a.empty = a.alarm
	return a
}

// adopt returns a new namespace the agenda of the step that makes it. In a replay
// it gets one of its own.
func (e *State) adopt(s *namespace) *pendingWork {
	if a := e.pendingWork; a != &e.whole && a.ns == nil {
		a.ns = s
		return a
	}
	return e.newAgenda(s)
}

// agendaOf returns the agenda on which a command in a namespace works.
func (e *Engine) agendaOf(name interlock.Namespace) *pendingWork {
	if name == "" {
		return &e.whole
	}
	if s := e.pendingWork.ns; s != nil && s.name == name { // as in the step before
		return e.pendingWork
	}
	if s := e.spaces[name]; s != nil {
		return s.agenda
	}
	return e.newAgenda(nil)
}

// begin enters the namespace of a command, and fires the timers that are due by its time.
func (e *Engine) begin(h *Head) {
	if h.Namespace == "" {
		e.enter(&e.whole, h.At)
		e.pass(h.At)
		return
	}
	e.enter(e.agendaOf(h.Namespace), h.At)
	if e.live {
		e.expire()
		e.settle()
	}
}

// finish does what a command has made possible.
func (e *Engine) finish() {
	if e.pendingWork != &e.whole {
		e.settle()
		e.rearm()
	}
}

// pass fires the timers that are due by a time in any namespace, as many as one step may.
func (e *Engine) pass(at Time) {
	for e.live && !e.full() && !e.lookBudgetSpent() && !e.rankBudgetSpent() && !e.tryBudgetSpent() {
		alarm := e.alarms.first()
		if alarm == nil || alarm.at > at {
			break
		}
		e.enter(alarm.agenda, e.whole.now)
		e.expire()
		e.settle()
		e.rearm()
		e.watchEmpty(alarm.agenda.ns)
	}
	e.pendingWork = &e.whole
}

// enter turns to an agenda, at a time.
func (e *Engine) enter(a *pendingWork, at Time) {
	e.pendingWork = a
	a.now = max(a.now, at)
	e.newest = max(e.newest, a.now)
}

// rearm sets the agenda's alarm to the earliest time with work left.
func (e *Engine) rearm() {
	at, ok := e.pendingWork.due(e.draining)
	switch alarm := &e.pendingWork.alarm; {
	case !ok:
		e.alarms.clear(alarm)
	case alarm.pos < 0 || alarm.at != at:
		e.alarms.set(alarm, at)
	}
}

// due returns when something is to be done.
func (a *pendingWork) due(draining bool) (at Time, ok bool) {
	if (len(a.ready)+len(a.uneven)+len(a.hungry) > 0) && !draining || a.isSearching() || a.dying.Len()+a.parting.Len()+a.dismissed.Len()+a.departed.Len() > 0 || a.doubt.under || a.ns.isSpelling() || a.ns.isRepooling() || a.ns.isUnranked() {
		return a.now, true
	}
	if t := a.timers.first(); t != nil {
		return t.at, true
	}
	return 0, false
}

// NextTimer returns when the next Tick is due in any namespace; ok is false when none
// is.
func (e *Engine) NextTimer() (at Time, ok bool) {
	if t := e.alarms.first(); t != nil {
		return t.at, true
	}
	return 0, false
}

// DueBy calls visit for each namespace in which something is due by a time. The
// order is no promise.
func (e *Engine) DueBy(at Time, visit func(interlock.Namespace)) {
	e.alarms.until(at, 0, func(t *timer) { visit(t.agenda.ns.name) })
}

// Due returns when the next Tick is due in a namespace; ok is false when none is.
func (e *Engine) Due(name interlock.Namespace) (at Time, ok bool) {
	if s := e.spaces[name]; s != nil && s.agenda.alarm.pos >= 0 {
		return s.agenda.alarm.at, true
	}
	return 0, false
}
