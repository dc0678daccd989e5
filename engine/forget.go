package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
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

// prune forgets a namespace that is bare, and notes whether it may be forgotten later.
func (e *Engine) prune() {
	switch s := e.PendingWork.NS; {
	case s == nil:
	case s.IsBare():
		e.Remove(s)
	default:
		e.watchEmpty(s)
	}
}

// watchEmpty notes from when on s may be forgotten. It is called after all that can change
// that.
func (e *Engine) watchEmpty(s *store.Namespace) {
	t := &s.Agenda.Empty
	switch at, ok := s.EmptyFrom(); {
	case !ok:
		e.Empty.Clear(t)
	case t.Pos < 0 || t.At != at:
		e.Empty.Set(t, at)
	}
}

// noRoomForSpace returns why the command's namespace cannot be made, or "". It makes room by
// forgetting the one that has been empty for longest.
func (e *Engine) noRoomForSpace() *message.Text {
	if e.PendingWork.NS != nil || len(e.Namespaces) < e.mostSpaces {
		return nil
	}
	t := e.Empty.First()
	switch {
	case t == nil:
		return message.New(message.NamespacesAllInUse, message.Num(e.mostSpaces))
	case t.At > e.Clock:
		return message.New(
			message.NamespacesAtLimit, message.Num(e.mostSpaces), message.Num(len(e.Empty.Heap)),
			message.Dur(t.At.Sub(e.Clock).Round(time.Second)),
		)
	}
	*e.draft() = record.Event{Kind: record.NamespaceForgotten, Namespace: t.Agenda.NS.Name}
	e.emit(e.ev)
	return nil
}

// deleteNamespace decides on DeleteNamespace.
func (c *DeleteNamespace) decide(e *Engine) {
	if problem := checkNamespace(c.Namespace); problem != nil {
		e.refuse(interlock.CodeInvalidNamespace, problem)
		return
	}
	s := e.PendingWork.NS
	if s == nil || s.IsBare() {
		e.reply(Done)
		return
	}
	left := contents(s)
	if left != nil && !c.Force {
		e.refuse(
			interlock.CodeNamespaceInUse, message.New(message.NamespaceInUse, message.Str(s.Name), message.Sub(left)),
		)
		return
	}
	farewells := e.farewells(s)
	*e.draft() = record.Event{Kind: record.NamespaceDeleted, Namespace: s.Name, Actor: c.Actor}
	e.ev.SetWhy(left)
	e.emit(e.ev)
	e.reply(Done)
	e.out.Effects = append(e.out.Effects, farewells...)
}

// contents returns what s contains: the numbers of living objects, and of permanent
// settings and documents. It is nil if there are none. Remembered answers, results and notes do not
// count.
func contents(s *store.Namespace) *message.Text {
	settings := 0
	if s.Unmatched != record.UnsetKeys {
		settings = 1
	}
	counts := []message.Arg{
		message.Num(len(s.Sessions) - s.Lingering), message.Num(s.Leases), message.Num(s.Away), message.Num(s.Waiters),
		message.Num(len(s.Tasks.All) - s.Tasks.Done.Len() - s.Tasks.Failed.Len()), message.Num(s.Tasks.Dead),
		message.Num(len(s.Documents.Present)),
		message.Num(len(s.SideEffects.Known) - s.SideEffects.Done.Len() - s.SideEffects.Free.Len()),
		message.Num(s.SideEffects.Done.Len()), message.Num(s.Logs.All.Len()), message.Num(len(s.Patterns)),
		message.Num(len(s.Tasks.Queues)), message.Num(settings), message.Num(len(s.Webhooks)),
	}
	if !slices.ContainsFunc(counts, func(a message.Arg) bool { return a.Number != 0 }) {
		return nil
	}
	return message.New(message.NamespaceContents, counts...)
}

// mostFarewells bounds the notifications of a namespace's listeners of its deletion, and the
// objects examined to find them. All other callers learn of it by their next call.
const mostFarewells = store.StepObjects

// farewells returns the notifications for the listeners in a deleted s: to a session for each
// of its leases, and to waiters that their wait is over. Up to half go to workers and followers
// of tasks.
func (e *Engine) farewells(s *store.Namespace) (list []Effect) {
	refuse := func(to store.Caller) *Effect {
		list = append(
			list,
			Effect{To: to, Outcome: Refused, Code: interlock.CodeRevoked, Message: message.New(message.NamespaceDeletedStop)},
		)
		return &list[len(list)-1]
	}
	others := min(len(s.Tasks.Idle)+len(s.Tasks.Heard), mostFarewells/2)
	for _, r := range e.listenedTo(s, mostFarewells-others) {
		if len(list) >= mostFarewells-others {
			break
		}
		if r.Phase == store.Waiting {
			refuse(r.Wait.Caller).Ticket.ID = r.ID
			continue
		}
		if r.IsParked() {
			for _, h := range r.Rare.Listeners[:min(len(r.Rare.Listeners), mostFarewells-others-len(list))] {
				refuse(h.Caller).Ticket.ID = r.ID
			}
			continue
		}
		l := r.Lease()
		l.State, l.EndedBy, l.Notes, l.ExpiresIn, l.MaxHoldIn, l.StallIn, l.Yield = interlock.Ended,
			record.ByRevocation.String(), nil, 0, 0, 0, nil
		list = append(
			list,
			Effect{
				To: r.Session().Caller, Outcome: Lost, Lease: l, Code: interlock.CodeRevoked,
				Message: message.New(message.NamespaceDeleted),
			},
		)
	}
	e.Visited += others
	pulls := slices.Clone(s.Tasks.Idle[:min(len(s.Tasks.Idle), others)])
	slices.SortFunc(pulls, func(a, b *store.Pull) int { return slices.Compare(a.ID[:], b.ID[:]) })
	for _, p := range pulls {
		refuse(p.Caller).Ticket.ID = p.ID
	}
	for _, f := range s.Tasks.Heard[:others-len(pulls)] {
		refuse(f.Caller).Tasks = []Task{f.Task.Show()}
	}
	return list
}

// listenedTo returns the waits with a caller and the leases of sessions with one, in the
// order of their numbers. It looks at so many requests at most.
func (e *Engine) listenedTo(s *store.Namespace, most int) (list []*store.Request) {
	looks := 0
	for i := 0; looks < most && s.Requests.Part(i, func(r *store.Request) {
		looks++
		switch r.Phase {
		case store.Waiting:
			if r.Wait.Caller != nil && r.Task == nil {
				list = append(list, r)
			}
		case store.Parked, store.Away:
			if len(r.Rare.Listeners) > 0 {
				list = append(list, r)
			}
		case store.Offered, store.Held, store.InGrace:
			if x := r.Session(); x != nil && x.Caller != nil && r.Share == nil {
				list = append(list, r)
			}
		}
	}); i++ {
	}
	e.Visited += looks
	slices.SortFunc(list, func(a, b *store.Request) int { return cmp.Compare(a.Num, b.Num) })
	return list
}
