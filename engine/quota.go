package engine

import (
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/record"
)

// Quotas: what a namespace and each of its principals may take. The limits of the
// version hold for the namespace besides.

// taken counts what a principal has.
type taken struct{ leases, waiters, sessions int }

// owner returns the principal that r is counted for, "" for none.
func (r *request) owner() string {
	if sess := r.session(); sess != nil {
		return sess.owner
	}
	if r.guest != nil {
		return r.guest.owner
	}
	return ""
}

// count adds to what a principal has.
func (s *namespace) count(owner string, by taken) {
	if owner == "" {
		return
	}
	t := s.taken[owner]
	t.leases += by.leases
	t.waiters += by.waiters
	t.sessions += by.sessions
	if t == (taken{}) {
		delete(s.taken, owner)
	} else {
		s.taken[owner] = t
	}
}

// within returns the smaller of a limit of the version and a quota, where 0 is no quota.
func within(limit, quota int) int {
	if quota > 0 {
		return min(limit, quota)
	}
	return limit
}

// overQuota returns why a new request has no room, or nil.
func (r *request) overQuota(actor string) *refusal {
	s := r.ns
	q, each := s.settings.Quota, s.settings.PrincipalQuota
	switch {
	case s.leases+s.waiters+s.away >= interlock.MaxLeases && r.phase != away:
		return &refusal{code: interlock.CodeTooManyLeases, message: fmt.Sprintf(
			"namespace %q has %d leases and waiters, which is its limit: release some first", s.name, interlock.MaxLeases,
		)}
	case q.Leases > 0 && s.leases >= q.Leases:
		return &refusal{code: interlock.CodeTooManyLeases, message: fmt.Sprintf(
			"namespace %q has %d leases, which is its quota: release some first", s.name, s.leases,
		)}
	}
	if no := r.tooManyKeys(); no != nil {
		return no
	}
	if t := s.taken[actor]; actor != "" && each.Leases > 0 && t.leases >= each.Leases {
		return &refusal{code: interlock.CodeTooManyLeases, message: fmt.Sprintf(
			"principal %q has %d leases, which is its quota: release some first", actor, t.leases,
		)}
	}
	return nil
}

// tooManyKeys returns a refusal if a request would add a key beyond the quota, or nil.
func (r *request) tooManyKeys() *refusal {
	s := r.ns
	if limit := s.settings.Quota.Keys; limit > 0 && s.nodes.Len() > limit && r.isNew() {
		return &refusal{code: interlock.CodeTooManyKeys, message: fmt.Sprintf(
			"namespace %q has %d keys in use, which is its quota: release some first", s.name, limit,
		)}
	}
	return nil
}

// tooManyKeysFor returns a refusal if tasks would add keys beyond the quota, or nil. The keys
// of tasks in line count, as for all waiters: a task that is scheduled or asks a person is not
// refused when it joins the line.
func (s *namespace) tooManyKeysFor(list []*record.Task) *refusal {
	limit := s.settings.Quota.Keys
	if limit == 0 {
		return nil
	}
	fresh := map[string]bool{}
	for _, spec := range list {
		for _, c := range spec.Claims {
			for key, more := string(c.Key), true; more && s.nodeAt(key) == nil; key, more = keypath.Parent(key) {
				fresh[key] = true
			}
		}
	}
	if len(fresh) == 0 || s.nodes.Len()+len(fresh) <= limit {
		return nil
	}
	return &refusal{code: interlock.CodeTooManyKeys, message: fmt.Sprintf(
		"namespace %q has %d keys in use, and its quota is %d: release some first", s.name, s.nodes.Len(), limit,
	)}
}

// tooManyAttempts returns a refusal if a principal cannot get another lease for a task, or nil.
func (s *namespace) tooManyAttempts(actor string) *refusal {
	q, each := s.settings.Quota, s.settings.PrincipalQuota
	limit := within(interlock.MaxLeases, q.Leases)
	if s.leases >= limit {
		return &refusal{code: interlock.CodeTooManyLeases, message: fmt.Sprintf("namespace %q has %d leases, which is its limit: release some first", s.name, limit)}
	}
	if t := s.taken[actor]; actor != "" && each.Leases > 0 && t.leases >= each.Leases {
		return &refusal{code: interlock.CodeTooManyLeases, message: fmt.Sprintf("principal %q has %d leases, which is its quota: release some first", actor, t.leases)}
	}
	return nil
}

// tooManyPulls returns why no other worker of a session, or of none, can be idle, or nil.
func (s *namespace) tooManyPulls(sess *session) *refusal {
	switch {
	case sess == nil:
		return s.tooManyListeners()
	case sess.pulls.Len() >= interlock.MaxPulls:
		return &refusal{code: interlock.CodeTooManyWaiters, message: fmt.Sprintf(
			"the session has %d pulls that wait for tasks, which is its limit: one pull takes up to %d tasks", sess.pulls.Len(), interlock.MaxPull,
		)}
	}
	return nil
}

// tooManyFollows returns a refusal if a session, or a caller without one, cannot follow another
// task, or nil.
func (s *namespace) tooManyFollows(sess *session) *refusal {
	switch {
	case sess == nil:
		return s.tooManyListeners()
	case sess.follows.Len() >= interlock.MaxFollows:
		return &refusal{code: interlock.CodeTooManyWaiters, message: fmt.Sprintf(
			"the session has %d waits for the ends of tasks, which is its limit: ask later how the task stands", sess.follows.Len(),
		)}
	}
	return nil
}

func (s *namespace) tooManyListeners() *refusal {
	if s.tasks.loose < interlock.MaxListeners {
		return nil
	}
	return &refusal{code: interlock.CodeTooManyWaiters, message: fmt.Sprintf(
		"in namespace %q %d callers without a session wait for tasks, which is its limit: open a session, or come back later", s.name, s.tasks.loose,
	)}
}

// tooManyFollowers returns a refusal if a task cannot have another follower, or nil.
func (t *task) tooManyFollowers() *refusal {
	if t.followers.Len() < interlock.MaxFollowers {
		return nil
	}
	return &refusal{code: interlock.CodeTooManyWaiters, message: fmt.Sprintf(
		"%d wait for the end of the task, which is its limit: ask later how it stands", t.followers.Len(),
	)}
}

// isNew reports whether one of r's keys exists for r alone.
func (r *request) isNew() bool {
	for way := range r.eachAlternative {
		for i := range way.needs() {
			if way.needs()[i].node.refs == 1 {
				return true
			}
		}
	}
	return false
}

// lineFull returns why r cannot stand in line, or nil.
func (r *request) lineFull(actor string) *refusal {
	s := r.ns
	full := func(what string, limit int) *refusal {
		return &refusal{code: interlock.CodeTooManyWaiters, message: fmt.Sprintf(
			"%s has %d waiters, which is its limit: work on something else, or come back later", what, limit,
		)}
	}
	if limit := within(interlock.MaxWaiters, s.settings.Quota.Waiters); s.waiters+s.alternatives >= limit {
		return full(fmt.Sprintf("namespace %q", s.name), limit)
	}
	if limit := s.settings.PrincipalQuota.Waiters; actor != "" && limit > 0 && s.taken[actor].waiters >= limit {
		return full(fmt.Sprintf("principal %q", actor), limit)
	}
	for way := range r.eachAlternative {
		for i := range way.needs() {
			m := &way.needs()[i]
			if !m.claimed {
				continue
			}
			limit := interlock.MaxWaitersPerKey
			if p := s.policyAt(m.node.key); p != nil {
				limit = within(limit, p.MaxWaiters)
			}
			if m.node.line.waiterCount() >= limit {
				return full("the line of "+m.node.key, limit)
			}
		}
	}
	return nil
}

// tooManySessions returns why a principal cannot open another session, or "".
func (s *namespace) tooManySessions(actor string) string {
	if limit := within(interlock.MaxSessions, s.settings.Quota.Sessions); len(s.sessions)-s.lingering >= limit {
		return fmt.Sprintf("namespace %q has %d sessions, which is its limit: close some first", s.name, limit)
	}
	if limit := s.settings.PrincipalQuota.Sessions; actor != "" && limit > 0 && s.taken[actor].sessions >= limit {
		return fmt.Sprintf("principal %q has %d sessions, which is its quota: close some first", actor, limit)
	}
	return ""
}
