package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Declared waits: a flow announces that it waits for another, which Interlock cannot see by
// itself. Such a wait is a request without claims, so it stands in no line and is never
// granted. It exists for the deadlocks that go through it. It ends like any wait, and when the
// session that it waits for is over.

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
	r := e.newRequest()
	r.id, r.num = c.ID, e.num+1
	b := r.mutableExt()
	b.target, b.targetFlow = target, c.On.Flow
	if sess != nil {
		r.join(sess.flow(flowOr(c.Flow)))
	} else {
		r.mutableExt().guest = &anonymousCaller{c.Agent, c.Actor}
	}
	r.terms = target.ns.agree(interlock.Terms{MaxWait: c.MaxWait})
	r.setDetails(requestDetail{purpose: c.Purpose})
	if sess == target && (r.targetFlow == "" || r.targetFlow == r.flow().name) {
		e.refuse(interlock.CodeInvalidRequest, message.New(message.WaitForItself))
		e.discard(r)
		return
	}
	e.try(r)
	if !e.queue(r, interlock.Wait, c.Attach) {
		e.discard(r)
	}
}

// party returns the live session with the given public name, or with an agent of that name. If
// there is none, or are several, the command is refused and ok is false.
func (e *Engine) party(on FlowRef) (s *session, ok bool) {
	if space := e.pendingWork.ns; space != nil {
		if on.Session != "" {
			s = space.roll.byName[on.Session]
		} else {
			s = space.roll.byAgent[on.Agent]
		}
	}
	switch {
	case s == nil:
		e.refuse(interlock.CodeUnknownSession, message.New(message.NoSessionToWaitFor, message.Str(cmp.Or(on.Session, on.Agent))))
	case on.Session == "" && s.sameAgent != nil:
		e.refuse(interlock.CodeInvalidRequest, message.New(message.SeveralSessions, message.Str(on.Agent)))
	default:
		return s, true
	}
	return nil, false
}

// await adds a declared wait to the list of the session that it waits for.
func (r *request) await() {
	r.pos = int32(len(r.target.awaiting))
	r.target.awaiting = append(r.target.awaiting, r)
}

// unawait takes it off again.
func (r *request) unawait() {
	list := r.target.awaiting
	last := len(list) - 1
	list[r.pos] = list[last]
	list[r.pos].pos = r.pos
	list[last] = nil
	r.target.awaiting = list[:last]
}

// endAwaiting ends the waits for a session that is over, and reports whether the
// step had room for all.
func (e *Engine) endAwaiting(s *session) bool {
	if len(s.awaiting) == 0 {
		return true
	}
	for len(s.awaiting) > 0 { // a swath of them, the last ones, at a time
		list := slices.Clone(s.awaiting[max(0, len(s.awaiting)-e.swath):])
		slices.SortFunc(list, func(a, b *request) int { return cmp.Compare(a.num, b.num) })
		e.objects += len(list)
		for _, r := range list {
			if e.full() {
				return false
			}
			e.leaveLine(r, record.ByTarget)
		}
	}
	return true
}

// seekTarget visits the flow that a declared wait waits for, or the session's flows that wait
// themselves, in the order of their names.
func (e *Engine) seekTarget(x *search, r *request, visit func(need int, p *flowState, r *request) bool) (closed, done bool) {
	if r.targetFlow != "" {
		f := r.target.flowOf(r.targetFlow, r.ns.salt.Hash(r.targetFlow))
		return f != nil && visit(noNeed, f, nil), true
	}
	x.begun = true
	i, met := slices.BinarySearchFunc(r.target.waiting, x.flow, byFlowName)
	if met {
		i++
	}
	for _, f := range r.target.waiting[i:] {
		if !e.countLook() {
			return false, false
		}
		if x.flow = f.name; visit(noNeed, f, nil) {
			return true, true
		}
	}
	return false, true
}

// noNeed stands for the index of a need in a wait that has none.
const noNeed = -1

// sessionIndex lists the live sessions of a namespace by their public names and their agents'
// names.
type sessionIndex struct {
	byName  map[string]*session // by public name
	byAgent map[string]*session // the latest one of each agent; the others follow it
}

func (l *sessionIndex) add(s *session) {
	if l.byName == nil {
		l.byName, l.byAgent = map[string]*session{}, map[string]*session{}
	}
	l.byName[s.name] = s
	if s.sameAgent = l.byAgent[s.agent]; s.sameAgent != nil {
		s.sameAgent.sameAgentBefore = s
	}
	l.byAgent[s.agent] = s
}

func (l *sessionIndex) remove(s *session) {
	delete(l.byName, s.name)
	next, before := s.sameAgent, s.sameAgentBefore
	if next != nil {
		next.sameAgentBefore = before
	}
	switch {
	case before != nil:
		before.sameAgent = next
	case next != nil:
		l.byAgent[s.agent] = next
	default:
		delete(l.byAgent, s.agent)
	}
	s.sameAgent, s.sameAgentBefore = nil, nil
}

func (c *Declare) again(e *Engine, a *storedAnswer) { e.answerAgain(a, c.Attach) }
