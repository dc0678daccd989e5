package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Quotas: what a namespace and each of its principals may take. The limits of the
// version hold for the namespace besides.

// usage counts what a principal has.
type usage struct{ leases, waiters, sessions int }

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
func (s *namespace) count(owner string, by usage) {
	if owner == "" {
		return
	}
	t := s.taken[owner]
	t.leases += by.leases
	t.waiters += by.waiters
	t.sessions += by.sessions
	if t == (usage{}) {
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
		return &refusal{code: interlock.CodeTooManyLeases, message: message.New(message.LeasesAndWaitersAtLimit, message.Str(s.name), message.Num(interlock.MaxLeases))}
	case q.Leases > 0 && s.leases >= q.Leases:
		return &refusal{code: interlock.CodeTooManyLeases, message: message.New(message.LeasesAtQuota, message.Str(s.name), message.Num(s.leases))}
	}
	if no := r.tooManyKeys(); no != nil {
		return no
	}
	if t := s.taken[actor]; actor != "" && each.Leases > 0 && t.leases >= each.Leases {
		return &refusal{code: interlock.CodeTooManyLeases, message: message.New(message.PrincipalLeasesAtQuota, message.Str(actor), message.Num(t.leases))}
	}
	return nil
}

// tooManyKeys returns a refusal if a request would add a key beyond the quota, or nil.
func (r *request) tooManyKeys() *refusal {
	s := r.ns
	if limit := s.settings.Quota.Keys; limit > 0 && s.nodes.Len() > limit && r.isNew() {
		return &refusal{code: interlock.CodeTooManyKeys, message: message.New(message.KeysAtQuota, message.Str(s.name), message.Num(limit))}
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
	return &refusal{code: interlock.CodeTooManyKeys, message: message.New(message.KeysOverQuota, message.Str(s.name), message.Num(s.nodes.Len()), message.Num(limit))}
}

// tooManyAttempts returns a refusal if a principal cannot get another lease for a task, or nil.
func (s *namespace) tooManyAttempts(actor string) *refusal {
	q, each := s.settings.Quota, s.settings.PrincipalQuota
	limit := within(interlock.MaxLeases, q.Leases)
	if s.leases >= limit {
		return &refusal{code: interlock.CodeTooManyLeases, message: message.New(message.LeasesAtLimit, message.Str(s.name), message.Num(limit))}
	}
	if t := s.taken[actor]; actor != "" && each.Leases > 0 && t.leases >= each.Leases {
		return &refusal{code: interlock.CodeTooManyLeases, message: message.New(message.PrincipalLeasesAtQuota, message.Str(actor), message.Num(t.leases))}
	}
	return nil
}

// tooManyPulls returns why no other worker of a session, or of none, can be idle, or nil.
func (s *namespace) tooManyPulls(sess *session) *refusal {
	switch {
	case sess == nil:
		return s.tooManyListeners()
	case sess.pulls.Len() >= interlock.MaxPulls:
		return &refusal{code: interlock.CodeTooManyWaiters, message: message.New(message.PullsAtLimit, message.Num(sess.pulls.Len()), message.Num(interlock.MaxPull))}
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
		return &refusal{code: interlock.CodeTooManyWaiters, message: message.New(message.TaskWaitsAtLimit, message.Num(sess.follows.Len()))}
	}
	return nil
}

func (s *namespace) tooManyListeners() *refusal {
	if s.tasks.loose < interlock.MaxListeners {
		return nil
	}
	return &refusal{code: interlock.CodeTooManyWaiters, message: message.New(message.ListenersAtLimit, message.Str(s.name), message.Num(s.tasks.loose))}
}

// tooManyFollowers returns a refusal if a task cannot have another follower, or nil.
func (t *task) tooManyFollowers() *refusal {
	if t.followers.Len() < interlock.MaxFollowers {
		return nil
	}
	return &refusal{code: interlock.CodeTooManyWaiters, message: message.New(message.FollowersAtLimit, message.Num(t.followers.Len()))}
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
	full := func(what *message.Text, limit int) *refusal {
		return &refusal{code: interlock.CodeTooManyWaiters, message: message.New(message.WaitersAtLimit, message.Sub(what), message.Num(limit))}
	}
	if limit := within(interlock.MaxWaiters, s.settings.Quota.Waiters); s.waiters+s.alternatives >= limit {
		return full(theNamespace(s.name), limit)
	}
	if limit := s.settings.PrincipalQuota.Waiters; actor != "" && limit > 0 && s.taken[actor].waiters >= limit {
		return full(thePrincipal(actor), limit)
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
				return full(theLine(m.node.key), limit)
			}
		}
	}
	return nil
}

func theNamespace(ns interlock.Namespace) *message.Text {
	return message.New(message.TheNamespace, message.Str(ns))
}

func thePrincipal(name string) *message.Text {
	return message.New(message.ThePrincipal, message.Str(name))
}

func theLine(key string) *message.Text { return message.New(message.TheLine, message.Str(key)) }

// tooManySessions returns why a principal cannot open another session, or "".
func (s *namespace) tooManySessions(actor string) *message.Text {
	if limit := within(interlock.MaxSessions, s.settings.Quota.Sessions); len(s.sessions)-s.lingering >= limit {
		return message.New(message.SessionsAtLimit, message.Str(s.name), message.Num(limit))
	}
	if limit := s.settings.PrincipalQuota.Sessions; actor != "" && limit > 0 && s.taken[actor].sessions >= limit {
		return message.New(message.PrincipalSessionsAtQuota, message.Str(actor), message.Num(limit))
	}
	return nil
}
