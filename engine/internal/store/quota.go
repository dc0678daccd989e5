package store

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Quotas: the bounds of a namespace and of each of its principals. The limits of the
// version hold for the namespace besides.

// usage counts the objects of a principal.
type usage struct{ leases, waiters, sessions int }

// Owner returns the principal that r is counted for, "" for none.
func (r *Request) Owner() string {
	if sess := r.Session(); sess != nil {
		return sess.Owner
	}
	if r.Guest != nil {
		return r.Guest.Owner
	}
	return ""
}

// count adds to the usage of a principal.
func (s *Namespace) count(owner string, by usage) {
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

// Within returns the smaller of a limit of the version and a quota, where 0 is no quota.
func Within(limit, quota int) int {
	if quota > 0 {
		return min(limit, quota)
	}
	return limit
}

// OverQuota returns why a new request has no room, or nil.
func (r *Request) OverQuota(actor string) *Refusal {
	s := r.NS
	q, each := s.Settings.Quota, s.Settings.PrincipalQuota
	switch {
	case s.Leases+s.Waiters+s.Away >= interlock.MaxLeases && r.Phase != Away:
		return &Refusal{
			Code:    interlock.CodeTooManyLeases,
			Message: message.New(message.LeasesAndWaitersAtLimit, message.Str(s.Name), message.Num(interlock.MaxLeases)),
		}
	case q.Leases > 0 && s.Leases >= q.Leases:
		return &Refusal{
			Code:    interlock.CodeTooManyLeases,
			Message: message.New(message.LeasesAtQuota, message.Str(s.Name), message.Num(s.Leases)),
		}
	}
	if no := r.TooManyKeys(); no != nil {
		return no
	}
	if t := s.taken[actor]; actor != "" && each.Leases > 0 && t.leases >= each.Leases {
		return &Refusal{
			Code:    interlock.CodeTooManyLeases,
			Message: message.New(message.PrincipalLeasesAtQuota, message.Str(actor), message.Num(t.leases)),
		}
	}
	return nil
}

// TooManyKeys returns a refusal if a request would add a key beyond the quota, or nil.
func (r *Request) TooManyKeys() *Refusal {
	s := r.NS
	if limit := s.Settings.Quota.Keys; limit > 0 && s.Nodes.Len() > limit && r.isNew() {
		return &Refusal{
			Code: interlock.CodeTooManyKeys, Message: message.New(message.KeysAtQuota, message.Str(s.Name), message.Num(limit)),
		}
	}
	return nil
}

// TooManyKeysFor returns a refusal if tasks would add keys beyond the quota, or nil. The keys
// of tasks in line count, as for all waiters: a task that is scheduled or asks a person is not
// refused when it joins the line.
func (s *Namespace) TooManyKeysFor(list []*record.Task) *Refusal {
	limit := s.Settings.Quota.Keys
	if limit == 0 {
		return nil
	}
	fresh := map[string]bool{}
	for _, spec := range list {
		for _, c := range spec.Claims {
			for key, more := string(c.Key), true; more && s.NodeAt(key) == nil; key, more = keypath.Parent(key) {
				fresh[key] = true
			}
		}
	}
	if len(fresh) == 0 || s.Nodes.Len()+len(fresh) <= limit {
		return nil
	}
	return &Refusal{
		Code:    interlock.CodeTooManyKeys,
		Message: message.New(message.KeysOverQuota, message.Str(s.Name), message.Num(s.Nodes.Len()), message.Num(limit)),
	}
}

// TooManyAttempts returns a refusal if a principal cannot get another lease for a task, or nil.
func (s *Namespace) TooManyAttempts(actor string) *Refusal {
	q, each := s.Settings.Quota, s.Settings.PrincipalQuota
	limit := Within(interlock.MaxLeases, q.Leases)
	if s.Leases >= limit {
		return &Refusal{
			Code:    interlock.CodeTooManyLeases,
			Message: message.New(message.LeasesAtLimit, message.Str(s.Name), message.Num(limit)),
		}
	}
	if t := s.taken[actor]; actor != "" && each.Leases > 0 && t.leases >= each.Leases {
		return &Refusal{
			Code:    interlock.CodeTooManyLeases,
			Message: message.New(message.PrincipalLeasesAtQuota, message.Str(actor), message.Num(t.leases)),
		}
	}
	return nil
}

// TooManyPulls returns why no other worker of a session, or of none, can be idle, or nil.
func (s *Namespace) TooManyPulls(sess *Session) *Refusal {
	switch {
	case sess == nil:
		return s.tooManyListeners()
	case sess.Pulls.Len() >= interlock.MaxPulls:
		return &Refusal{
			Code:    interlock.CodeTooManyWaiters,
			Message: message.New(message.PullsAtLimit, message.Num(sess.Pulls.Len()), message.Num(interlock.MaxPull)),
		}
	}
	return nil
}

// TooManyFollows returns a refusal if a session, or a caller without one, cannot follow another
// task, or nil.
func (s *Namespace) TooManyFollows(sess *Session) *Refusal {
	switch {
	case sess == nil:
		return s.tooManyListeners()
	case sess.Follows.Len() >= interlock.MaxFollows:
		return &Refusal{
			Code: interlock.CodeTooManyWaiters, Message: message.New(message.TaskWaitsAtLimit, message.Num(sess.Follows.Len())),
		}
	}
	return nil
}

func (s *Namespace) tooManyListeners() *Refusal {
	if s.Tasks.Loose < interlock.MaxListeners {
		return nil
	}
	return &Refusal{
		Code:    interlock.CodeTooManyWaiters,
		Message: message.New(message.ListenersAtLimit, message.Str(s.Name), message.Num(s.Tasks.Loose)),
	}
}

// TooManyFollowers returns a refusal if a task cannot have another follower, or nil.
func (t *Task) TooManyFollowers() *Refusal {
	if t.Followers.Len() < interlock.MaxFollowers {
		return nil
	}
	return &Refusal{
		Code: interlock.CodeTooManyWaiters, Message: message.New(message.FollowersAtLimit, message.Num(t.Followers.Len())),
	}
}

// isNew reports whether one of r's keys exists for r alone.
func (r *Request) isNew() bool {
	for way := range r.EachAlternative {
		for i := range way.Needs() {
			if way.Needs()[i].Node.refs == 1 {
				return true
			}
		}
	}
	return false
}

// LineFull returns why r cannot stand in line, or nil.
func (r *Request) LineFull(actor string) *Refusal {
	s := r.NS
	full := func(what *message.Text, limit int) *Refusal {
		return &Refusal{
			Code:    interlock.CodeTooManyWaiters,
			Message: message.New(message.WaitersAtLimit, message.Sub(what), message.Num(limit)),
		}
	}
	if limit := Within(interlock.MaxWaiters, s.Settings.Quota.Waiters); s.Waiters+s.alternatives >= limit {
		return full(theNamespace(s.Name), limit)
	}
	if limit := s.Settings.PrincipalQuota.Waiters; actor != "" && limit > 0 && s.taken[actor].waiters >= limit {
		return full(thePrincipal(actor), limit)
	}
	for way := range r.EachAlternative {
		for i := range way.Needs() {
			m := &way.Needs()[i]
			if !m.Claimed {
				continue
			}
			limit := interlock.MaxWaitersPerKey
			if p := s.PolicyAt(m.Node.Key); p != nil {
				limit = Within(limit, p.MaxWaiters)
			}
			if m.Node.Line.waiterCount() >= limit {
				return full(theLine(m.Node.Key), limit)
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

// TooManySessions returns why a principal cannot open another session, or "".
func (s *Namespace) TooManySessions(actor string) *message.Text {
	if limit := Within(interlock.MaxSessions, s.Settings.Quota.Sessions); len(s.Sessions)-s.Lingering >= limit {
		return message.New(message.SessionsAtLimit, message.Str(s.Name), message.Num(limit))
	}
	if limit := s.Settings.PrincipalQuota.Sessions; actor != "" && limit > 0 && s.taken[actor].sessions >= limit {
		return message.New(message.PrincipalSessionsAtQuota, message.Str(actor), message.Num(limit))
	}
	return nil
}
