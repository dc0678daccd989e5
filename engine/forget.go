package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// The end of a namespace. There are three:
//
//	bare       nothing was ever journaled of it, as after a refusal: it goes at once
//	forgotten  it is empty and has been left alone: it goes when a new one needs its room
//	deleted    an operator deleted it, with all that is in it
//
// Fences and the numbers of requests and sessions are the shard's, so they grow whatever is
// forgotten. The versions of documents and the numbers of log entries are the namespace's. So
// that a later namespace of the same name never reuses one, the end of a namespace takes a
// version of its own, as if a commit had deleted all documents: Engine.past keeps the highest
// of these, and every new namespace begins above it. Anything read before the end is stale
// after it.

// isBare reports whether nothing is left of s, and nothing of it was ever journaled that
// counts.
func (s *namespace) isBare() bool {
	return len(s.sessions) == 0 &&
		s.nodes.Len()+s.requests.Len()+s.tombs.Len()+s.endedSessions.Len()+len(s.ids.known)+len(s.holds)+len(s.revisions)+len(s.sideEffects.known)+len(s.tasks.queues)+len(s.logs.known) == 0 &&
		uint64(s.docs.version) == s.born && len(s.docs.known) == 0 && s.logs.floor == s.born && s.unmatched == record.UnsetKeys
}

// beginAt makes a new namespace assign versions and numbers above floor only.
func (s *namespace) beginAt(floor uint64) {
	s.born = floor
	s.docs.version, s.docs.floor, s.logs.floor = interlock.Version(floor), interlock.Version(floor), floor
}

// highest is the highest version or number that s has given out.
func (s *namespace) highest() uint64 {
	return max(uint64(s.docs.version), s.logs.floor, s.logs.top)
}

// prune forgets a namespace that is bare, and notes whether it may be forgotten later.
func (e *Engine) prune() {
	switch s := e.pendingWork.ns; {
	case s == nil:
	case s.isBare():
		e.remove(s)
	default:
		e.watchEmpty(s)
	}
}

// watchEmpty notes from when on s may be forgotten. It is called after all that can change
// that.
func (e *Engine) watchEmpty(s *namespace) {
	t := &s.agenda.empty
	switch at, ok := s.emptyFrom(); {
	case !ok:
		e.empty.clear(t)
	case t.pos < 0 || t.at != at:
		e.empty.set(t, at)
	}
}

// emptyFrom returns the time from which s may be forgotten; ok is false while it contains
// anything that a caller may come back for. Other remembered data, such as how leases have
// ended, may go.
func (s *namespace) emptyFrom() (at Time, ok bool) {
	if len(s.sessions)+s.requests.Len()+len(s.patterns)+len(s.docs.present) > 0 || s.unmatched != record.UnsetKeys ||
		len(s.tasks.queues)+len(s.tasks.known)+len(s.tasks.pulls)+len(s.logs.known) > 0 ||
		s.sideEffects.done.Len()+s.sideEffects.free.Len() < len(s.sideEffects.known) {
		return 0, false
	}
	at = s.agenda.now.Add(interlock.NamespaceIdle)
	if s.ids.order.Len() > 0 {
		at = max(at, s.ids.last.Add(interlock.RequestIDWindow))
	}
	for _, c := range []*collection.List[*sideEffect]{&s.sideEffects.done, &s.sideEffects.free} {
		if c.Len() > 0 {
			at = max(at, c.Back().Value.settled.Add(s.effectRetention()))
		}
	}
	return at, true
}

// noRoomForSpace returns why the command's namespace cannot be made, or "". It makes room by
// forgetting the one that has been empty for longest.
func (e *Engine) noRoomForSpace() *message.Text {
	if e.pendingWork.ns != nil || len(e.spaces) < e.mostSpaces {
		return nil
	}
	t := e.empty.first()
	switch {
	case t == nil:
		return message.New(message.NamespacesAllInUse, message.Num(e.mostSpaces))
	case t.at > e.now:
		return message.New(message.NamespacesAtLimit, message.Num(e.mostSpaces), message.Num(len(e.empty.heap)), message.Dur(t.at.Sub(e.now).Round(time.Second)))
	}
	*e.draft() = record.Event{Kind: record.NamespaceForgotten, Namespace: t.agenda.ns.name}
	e.emit(e.ev)
	return nil
}

// deleteNamespace decides on DeleteNamespace.
func (c *DeleteNamespace) decide(e *Engine) {
	if problem := checkNamespace(c.Namespace); problem != nil {
		e.refuse(interlock.CodeInvalidNamespace, problem)
		return
	}
	s := e.pendingWork.ns
	if s == nil || s.isBare() {
		e.reply(Done)
		return
	}
	left := s.left()
	if left != "" && !c.Force {
		e.refuse(interlock.CodeNamespaceInUse, message.New(message.NamespaceInUse, message.Str(s.name), message.Str(left)))
		return
	}
	farewells := e.farewells(s)
	*e.draft() = record.Event{Kind: record.NamespaceDeleted, Namespace: s.name, Actor: c.Actor, Outcome: left}
	e.emit(e.ev)
	e.reply(Done)
	e.out.Effects = append(e.out.Effects, farewells...)
}

// mostFarewells bounds the notifications of a namespace's listeners of its deletion, and the
// objects examined to find them. All other callers learn of it by their next call.
const mostFarewells = StepObjects

// farewells returns the notifications for the listeners in a deleted s: to a session for each
// of its leases, and to waiters that their wait is over. Up to half go to workers and followers
// of tasks.
func (e *Engine) farewells(s *namespace) (list []Effect) {
	refuse := func(to Caller) *Effect {
		list = append(list, Effect{To: to, Outcome: Refused, Code: interlock.CodeRevoked, Message: message.New(message.NamespaceDeletedStop)})
		return &list[len(list)-1]
	}
	others := min(len(s.tasks.idle)+len(s.tasks.heard), mostFarewells/2)
	for _, r := range e.listenedTo(s, mostFarewells-others) {
		if len(list) >= mostFarewells-others {
			break
		}
		if r.phase == waiting {
			refuse(r.wait.caller).Ticket.ID = r.id
			continue
		}
		if r.isParked() {
			for _, h := range r.dealings.hearers[:min(len(r.dealings.hearers), mostFarewells-others-len(list))] {
				refuse(h.caller).Ticket.ID = r.id
			}
			continue
		}
		l := e.lease(r)
		l.State, l.EndedBy, l.Notes, l.ExpiresIn, l.MaxHoldIn, l.StallIn, l.Yield = interlock.Ended, record.ByRevocation.String(), nil, 0, 0, 0, nil
		list = append(list, Effect{To: r.session().caller, Outcome: Lost, Lease: l, Code: interlock.CodeRevoked, Message: message.New(message.NamespaceDeleted)})
	}
	e.objects += others
	pulls := slices.Clone(s.tasks.idle[:min(len(s.tasks.idle), others)])
	slices.SortFunc(pulls, func(a, b *pull) int { return slices.Compare(a.id[:], b.id[:]) })
	for _, p := range pulls {
		refuse(p.caller).Ticket.ID = p.id
	}
	for _, f := range s.tasks.heard[:others-len(pulls)] {
		refuse(f.caller).Tasks = []interlock.Task{e.showTask(f.task)}
	}
	return list
}

// listenedTo returns the waits with a caller and the leases of sessions with one, in the
// order of their numbers. It looks at so many requests at most.
func (e *Engine) listenedTo(s *namespace, most int) (list []*request) {
	looks := 0
	for i := 0; looks < most && s.requests.Part(i, func(r *request) {
		looks++
		switch r.phase {
		case waiting:
			if r.wait.caller != nil && r.task == nil {
				list = append(list, r)
			}
		case parked, away:
			if len(r.dealings.hearers) > 0 {
				list = append(list, r)
			}
		case offered, held, inGrace:
			if x := r.session(); x != nil && x.caller != nil && r.share == nil {
				list = append(list, r)
			}
		}
	}); i++ {
	}
	e.objects += looks
	slices.SortFunc(list, func(a, b *request) int { return cmp.Compare(a.num, b.num) })
	return list
}

// evolveGone folds record.NamespaceDeleted and record.NamespaceForgotten.
func (e *State) evolveGone(ev *record.Event) error {
	s := e.spaces[ev.Namespace]
	if s == nil {
		return errUnknown
	}
	e.past = max(e.past, s.highest()+1)
	e.remove(s)
	return nil
}

// remove drops a namespace. A step that is about it continues without one.
func (e *State) remove(s *namespace) {
	e.alarms.clear(&s.agenda.alarm)
	e.empty.clear(&s.agenda.empty)
	delete(e.spaces, s.name)
	if e.pendingWork == s.agenda {
		now := e.now
		e.pendingWork = e.newAgenda(nil)
		e.now = now
	}
}
