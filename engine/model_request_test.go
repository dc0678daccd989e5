package engine_test

import (
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// newRequest is the request that ask would make.
func (m *model) newRequest(ask *engine.Acquire, num uint64) *request {
	r := &request{num: num, ns: ask.Namespace, ask: *ask, arrived: m.now}
	if !ask.Session.IsZero() {
		r.session = m.sessionByID(ask.Namespace, ask.Session)
	}
	r.claims = m.normal(ask.Namespace, ask.Claims)
	switch {
	case r.session == nil:
		r.ask.Flow = "" // flows are a session's
	case ask.Flow == "":
		r.ask.Flow = "main"
	}
	m.terms(r)
	r.lead = m.leads(r)
	return r
}

// leads reports whether leases of r's own flow claim all its keys already.
func (m *model) leads(r *request) bool {
	if r.session == nil {
		return false
	}
	for _, want := range r.claims {
		claims := func(q *request) bool {
			return q.phase == held && q.party() == r.party() &&
				slices.ContainsFunc(q.claims, func(have interlock.Claim) bool { return have.Key == want.Key })
		}
		if !slices.ContainsFunc(m.requests, claims) {
			return false
		}
	}
	return true
}

// normal spells out the zero Mode, and each key in its one spelling.
func (m *model) normal(ns interlock.Namespace, claims []interlock.Claim) []interlock.Claim {
	list := slices.Clone(claims)
	for i := range list {
		list[i].Key = m.spell(ns, list[i].Key)
		if list[i].Mode == 0 {
			list[i].Mode = interlock.Exclusive
		}
	}
	return list
}

// wrongWith names the rule that a request breaks. The random runs break at most
// one at a time.
func (m *model) wrongWith(c *engine.Acquire) interlock.Code {
	if c.Prefix != "" && len(c.Claims) > 0 {
		return interlock.CodeInvalidRequest
	}
	if c.Prefix != "" && len(m.members(c.Namespace, c.Prefix)) == 0 {
		return interlock.CodeUnknownPattern
	}
	if code := m.wrongClaims(&c.Head, c.Claims, c.Group, interlock.Permits); code != "" && !(c.Any && code == interlock.CodeTooManyClaims) {
		return code
	}
	if n := len(c.Claims); c.Any && (n < 2 || n > interlock.MaxAlternatives) {
		return interlock.CodeTooManyClaims
	}
	out := func(d, most time.Duration) bool { return d < 0 || d > most }
	switch {
	case c.TTL != 0 && (c.TTL < interlock.MinTTL || c.TTL > interlock.MaxTTL),
		c.Grace != engine.NoGrace && out(c.Grace, interlock.MaxGrace),
		out(c.MaxHold, interlock.MaxMaxHold), out(c.Stall, interlock.MaxStall),
		out(c.LockDelay, interlock.MaxLockDelay), out(c.MaxWait, interlock.MaxMaxWait):
		return interlock.CodeInvalidTTL
	case c.Priority < -interlock.MaxPriority || c.Priority > interlock.MaxPriority:
		return interlock.CodeInvalidPriority
	}
	return ""
}

// wrongClaims names the rule that claims break. Of the modes with a count only
// those given may be asked for.
func (m *model) wrongClaims(head *engine.Head, asked []interlock.Claim, group string, counted ...interlock.Mode) interlock.Code {
	claims := m.normal(head.Namespace, asked)
	if len(claims) == 0 || len(claims) > interlock.MaxClaims {
		return interlock.CodeTooManyClaims
	}
	for i, claim := range claims {
		if _, err := engine.ParseKey(string(claim.Key)); err != nil {
			return interlock.CodeInvalidKey
		}
		if slices.ContainsFunc(claims[:i], func(other interlock.Claim) bool { return other.Key == claim.Key }) {
			return interlock.CodeDuplicateClaim
		}
	}
	for _, claim := range claims {
		if claim.Mode > interlock.Exclusive && !slices.Contains(counted, claim.Mode) {
			return interlock.CodeInvalidMode
		}
	}
	return m.wrongWithPatterns(head.Namespace, claims, head.Actor, group)
}

// covering gives the leases of the same flow each of which has all that r asks
// for, or one of the alternatives. One in grace does no new work, and of an offer the holder does not know yet, so
// they are not among them.
func (m *model) covering(r *request) (list []*request) {
	if r.session == nil {
		return nil
	}
	for _, q := range m.requests {
		has := func(c interlock.Claim) bool { return coversAll(q.claims, []interlock.Claim{c}) }
		enough := coversAll(q.claims, r.claims) || r.ask.Any && slices.ContainsFunc(r.claims, has)
		if q.phase == held && q.party() == r.party() && enough {
			list = append(list, q)
		}
	}
	return list
}

func (m *model) highestNum() (num uint64) {
	for _, r := range m.requests {
		num = max(num, r.num)
	}
	return num
}

// made is the request that cmd would make, nil when it makes none.
func (m *model) made(cmd engine.Command, num uint64) *request {
	switch c := cmd.(type) {
	case *engine.Acquire:
		return m.newRequest(c, num)
	case *engine.Convert:
		return m.newConversion(c, num)
	}
	return nil
}

// idOf is the id that a command brings for the request that it makes.
func idOf(cmd engine.Command) (id [16]byte, attach bool) {
	switch c := cmd.(type) {
	case *engine.Acquire:
		return c.ID, c.Attach
	case *engine.Convert:
		return c.ID, c.Attach
	}
	return id, false
}
