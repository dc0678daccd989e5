package engine_test

import (
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// Waits for the end of a task. With a session it is a wait of its flow: a request without
// claims, as a declared one is, and is not journaled.

// follower is a caller that is notified when a task is settled.
type follower struct {
	task    *task
	to      engine.Caller
	link    uint64
	session *session
	wait    *request // of its flow; nil for one without a session
}

// endedFollower is a follower that is notified of the end of its wait before the end of the
// task.
type endedFollower struct {
	*follower
	code interlock.Code
}

// standing is that with which a task stands in line, or is in a worker's hands, or that
// of the message which holds it back; nil if there is none.
func (m *model) standing(t *task) *request {
	if first := m.ahead(t); first != nil {
		return first.request
	}
	return t.request
}

// isFollowed reports whether a flow waits for that which stands in line, or is held,
// with r.
func (m *model) isFollowed(r *request) bool {
	return slices.ContainsFunc(m.requests, func(q *request) bool { return q.awaits != nil && m.standing(q.awaits) == r })
}

func (m *model) expectFollow(c *engine.FollowTask) answer {
	return m.withTask(&c.Head, c.Task, func(t *task) answer {
		told := answer{outcome: engine.Done, check: func(got *engine.Effect) error { return m.checkTold(c.Task, got) }}
		if !c.Attach || c.Session.IsZero() {
			return told
		}
		return m.withSession(&c.Head, func(s *session) answer {
			if t.state == interlock.TaskRunning && t.request.party() == flowOf(s, c.Flow) {
				return refusalKey(interlock.CodeInvalidRequest)
			}
			own := m.wouldHold(t.ns, s, t.spec.Claims)
			if t.state == interlock.TaskRunning {
				own = t.request.session == s && t.request.phase == held
			}
			if c.Flow == "" && own && !t.isSettled() {
				return refusalKey(interlock.CodeInvalidRequest)
			}
			return told
		})
	})
}

// waitsForOwn reports whether a request of a session that names no flow needs what is held by a
// task in the same session's hands: the caller may be that task's worker.
func (m *model) waitsForOwn(r *request, flow string) bool {
	if r.session == nil || flow != "" {
		return false
	}
	if !r.ask.Any {
		return m.wouldHold(r.ns, r.session, r.wants())
	}
	for _, c := range r.wants() {
		if !m.wouldHold(r.ns, r.session, []interlock.Claim{c}) {
			return false
		}
	}
	return true
}

// wouldHold reports whether a task that a session has in hand holds up claims.
func (m *model) wouldHold(ns interlock.Namespace, s *session, claims []interlock.Claim) bool {
	return slices.ContainsFunc(m.requests, func(q *request) bool {
		return q.ns == ns && q.task != nil && q.phase == held && q.session == s && anyClash(q.wants(), claims)
	})
}

func flowOf(s *session, flow string) flowState {
	if flow == "" {
		flow = "main"
	}
	return flowState{ns: s.ns, session: s.num, flow: flow}
}

// listens takes in that the caller listens for the end of a task that exists already, or
// listens no more.
func (m *model) listens(cmd engine.Command, known *storedReply, want answer) {
	switch c := cmd.(type) {
	case *engine.Submit:
		if known != nil && c.Attach && want.outcome == engine.Done {
			m.follow(&c.Head, m.task(c.Namespace, known.task), c.Flow)
		}
	case *engine.FollowTask:
		if c.Attach && want.outcome == engine.Done {
			m.follow(&c.Head, m.task(c.Namespace, c.Task), c.Flow)
		}
	case *engine.Detach:
		m.detach(c)
	case *engine.Leave:
		if known == nil {
			m.detach(&engine.Detach{Head: c.Head, Ticket: c.Ticket})
		}
	}
}

// follow makes the caller wait for the end of a task.
func (m *model) follow(head *engine.Head, t *task, flow string) {
	if t == nil || t.isSettled() {
		return
	}
	f := &follower{task: t, to: head.From, link: head.Link, session: m.sessionByID(head.Namespace, head.Session)}
	t.followers = append(t.followers, f)
	if f.session == nil {
		return
	}
	f.wait = &request{
		num: m.highestNum(), ns: t.ns, session: f.session, awaits: t, arrived: m.now, phase: waiting, queuedAt: m.events,
	}
	f.wait.ask.Flow, f.wait.ask.Priority = flowOf(f.session, flow).flow, t.spec.Priority
	m.requests = append(m.requests, f.wait)
	m.ranks = nil
}

// unfollow ends a follower, and its wait.
func (m *model) unfollow(f *follower) {
	f.task.followers = slices.DeleteFunc(f.task.followers, func(o *follower) bool { return o == f })
	m.endWait(f)
}

// endWait ends the wait of a follower.
func (m *model) endWait(f *follower) {
	if f.wait != nil {
		m.requests = slices.DeleteFunc(m.requests, func(r *request) bool { return r == f.wait })
		m.ranks = nil
	}
}

// following returns all followers of tasks that satisfy a condition. Followers of a task that
// has ended in this step are notified of that, whatever comes after it.
func (m *model) following(which func(*follower) bool) (list []*follower) {
	for _, t := range m.tasks {
		if slices.Contains(m.endings, t) {
			continue
		}
		for _, f := range t.followers {
			if which(f) {
				list = append(list, f)
			}
		}
	}
	return list
}

// detach records the end of listening.
func (m *model) detach(c *engine.Detach) {
	for _, f := range m.following(func(f *follower) bool {
		meant := f.session != nil && f.session.id == c.Session
		if !c.Ticket.IsZero() {
			meant = f.task.id == interlock.TaskID(c.Ticket)
		}
		return f.task.ns == c.Namespace && meant && f.link == c.Link
	}) {
		m.unfollow(f)
	}
}

// endFollows: with a session end the waits of its flows.
func (m *model) endFollows(s *session) {
	for _, f := range m.following(func(f *follower) bool { return f.session == s }) {
		m.unfollow(f)
		m.unfollowed = append(m.unfollowed, endedFollower{f, interlock.CodeSessionEnded})
	}
}

// victimsAmong returns of the effects those that refuse to wait for the end of a task any
// longer because of a deadlock.
func (m *model) victimsAmong(effects []engine.Effect) (list []*engine.Effect) {
	for i := range effects {
		if e := &effects[i]; e.Outcome == engine.Refused && e.Code == interlock.CodeDeadlock && len(e.Tasks) == 1 {
			list = append(list, e)
		}
	}
	return list
}

// sacrifice ends the waits that the effects refuse, as soon as the rule for victims permits it:
// no event marks that moment. It returns the remaining effects, and the reason why the first
// one is not permitted.
func (m *model) sacrifice(effects []*engine.Effect) ([]*engine.Effect, error) {
	for i, e := range effects {
		err := fmt.Errorf("%v does not wait for the end of task %s", e.To, shortID(e.Tasks[0].ID))
		k := -1
		list := m.following(func(f *follower) bool { return f.to == e.To && f.task.id == e.Tasks[0].ID && f.wait != nil })
		for n, f := range list {
			if err = m.permitVictim(f.wait, e.Conflict.Cycle); err == nil {
				k = n
				break
			}
		}
		if k < 0 {
			return effects[i:], err
		}
		f := list[k]
		m.victims, m.sacrificed = append(m.victims, f.wait.party()), append(m.sacrificed, f.wait)
		m.unfollow(f)
		m.unfollowed = append(m.unfollowed, endedFollower{f, interlock.CodeDeadlock})
	}
	return nil, nil
}
