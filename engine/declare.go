package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Declared waits: a flow announces that it waits for another, which Interlock cannot see by
// itself. Such a wait is a request without claims, so it stands in no line and is never
// granted. It exists for the deadlocks that go through it. It ends like any wait, and when the
// session that it waits for is over.
//
// A flow with a lease around work in another session, such as a command that it runs, declares
// that as well. The work ends before its wait does, whatever the engine decides. So in a cycle
// such a wait is not the victim but the one of the work, which would wait for itself.

func (c *Declare) decide(e *Engine) {
	if code, problem := e.closedFor(); code != "" {
		e.refuse(code, problem)
		return
	}
	sess, ok := e.caller()
	if !ok {
		return
	}
	if code, problem := checkDeclare(c); code != "" {
		e.refuse(code, problem)
		return
	}
	target, ok := e.party(c.On)
	if !ok {
		return
	}
	if e.isTaken(c.ID) {
		return
	}
	if sess == target && (c.On.Flow == "" || c.On.Flow == flowOr(c.Flow)) {
		e.refuse(interlock.CodeInvalidRequest, message.New(message.WaitForItself))
		return
	}
	r := e.NewRequest()
	r.ID, r.Num = c.ID, e.Num+1
	b := r.MutableExt()
	b.Target, b.TargetFlow, b.Encloses = target, c.On.Flow, c.Encloses
	if sess != nil {
		r.Join(sess.Flow(flowOr(c.Flow)))
	} else {
		r.MutableExt().Guest = &store.AnonymousCaller{Agent: c.Agent, Owner: c.Actor}
	}
	r.Conditions = target.NS.Agree(interlock.Terms{MaxWait: c.MaxWait})
	r.SetDetails(store.RequestDetail{Purpose: c.Purpose})
	e.Try(r)
	if !e.queue(r, interlock.Wait, c.Attach) {
		e.Discard(r)
	}
}

// party returns the live session with the given public name, or with an agent of that name. If
// there is none, or are several, the command is refused and ok is false.
func (e *Engine) party(on FlowRef) (s *store.Session, ok bool) {
	if space := e.PendingWork.NS; space != nil {
		if on.Session != "" {
			s = space.Roll.ByName[on.Session]
		} else {
			s = space.Roll.ByAgent[on.Agent]
		}
	}
	switch {
	case s == nil:
		e.refuse(
			interlock.CodeUnknownSession, message.New(message.NoSessionToWaitFor, message.Str(cmp.Or(on.Session, on.Agent))),
		)
	case on.Session == "" && s.SameAgent != nil:
		e.refuse(interlock.CodeInvalidRequest, message.New(message.SeveralSessions, message.Str(on.Agent)))
	default:
		return s, true
	}
	return nil, false
}

// endAwaiting ends the waits for a session that is over, and reports whether the
// step had room for all.
func (e *Engine) endAwaiting(s *store.Session) bool {
	if len(s.Awaiting) == 0 {
		return true
	}
	for len(s.Awaiting) > 0 { // a swath of them, the last ones, at a time
		list := slices.Clone(s.Awaiting[max(0, len(s.Awaiting)-e.Swath):])
		slices.SortFunc(list, func(a, b *store.Request) int { return cmp.Compare(a.Num, b.Num) })
		e.Visited += len(list)
		for _, r := range list {
			if e.full() {
				return false
			}
			e.leaveLine(r, record.ByTarget)
		}
	}
	return true
}

func (c *Declare) again(e *Engine, a *store.StoredAnswer) { e.answerAgain(a, c.Attach) }
