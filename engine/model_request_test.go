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
	for _, key := range m.members(ask.Namespace, ask.Prefix) {
		if ask.Prefix != "" {
			r.claims, r.ask.Any = append(r.claims, m.normal(ask.Namespace, []interlock.Claim{{Key: key}})...), true
		}
	}
	r.ask.Any = r.ask.Any && len(r.claims) > 1
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

// leads reports whether leases of r's own flow claim all its keys already, so that every waiter
// for those waits for that flow. Other holders may return permits, too, and of several
// alternatives another may be free.
func (m *model) leads(r *request) bool {
	if r.session == nil || r.ask.Any {
		return false
	}
	for _, want := range r.claims {
		claims := func(q *request) bool {
			return q.phase == held && q.party() == r.party() &&
				slices.ContainsFunc(q.claims, func(have interlock.Claim) bool { return have.Key == want.Key })
		}
		if want.Mode.Counts() || !slices.ContainsFunc(m.requests, claims) {
			return false
		}
	}
	return true
}

// normal spells out the zero Mode, which is a permit where a pattern bounds those, and each key in its one spelling.
func (m *model) normal(ns interlock.Namespace, claims []interlock.Claim) []interlock.Claim {
	list := slices.Clone(claims)
	for i := range list {
		list[i].Key = m.spell(ns, list[i].Key)
		if list[i].Mode == 0 {
			list[i].Mode = interlock.Exclusive
			if p := m.pattern(ns, list[i].Key); p != nil && (p.Capacity > 0 || p.Rate > 0) {
				list[i].Mode, list[i].Count = interlock.Permits, 1
			}
		}
	}
	return list
}

// wrongWith names the rules that a request breaks.
func (m *model) wrongWith(c *engine.Acquire) (codes []interlock.Code) {
	if c.Prefix != "" {
		if len(c.Claims) > 0 {
			codes = append(codes, interlock.CodeInvalidRequest)
		}
		if len(m.members(c.Namespace, c.Prefix)) == 0 {
			codes = append(codes, interlock.CodeUnmatchedKey)
		}
	}
	if c.Prefix != "" {
		return codes
	}
	counted := []interlock.Mode{interlock.Permits}
	if !c.Any {
		counted = append(counted, interlock.Barrier, interlock.Member)
	}
	codes = append(codes, m.wrongClaims(&c.Head, nil, c.Claims, c.Group, counted...)...)
	if c.Any {
		codes = slices.DeleteFunc(codes, func(code interlock.Code) bool { return code == interlock.CodeTooManyClaims })
		if n := len(c.Claims); n < 1 || n > interlock.MaxAlternatives {
			codes = append(codes, interlock.CodeTooManyClaims)
		}
	}
	out := func(d, most time.Duration) bool { return d < 0 || d > most }
	if c.TTL != 0 && (c.TTL < interlock.MinTTL || c.TTL > interlock.MaxTTL) ||
		c.Grace != engine.NoGrace && out(c.Grace, interlock.MaxGrace) ||
		out(c.MaxHold, interlock.MaxMaxHold) || out(c.Stall, interlock.MaxStall) ||
		out(c.LockDelay, interlock.MaxLockDelay) || out(c.MaxWait, interlock.MaxMaxWait) {
		codes = append(codes, interlock.CodeInvalidTTL)
	}
	if !m.readable(c.AsOf, c.Namespace) || c.AsOf > 0 && c.AsOf < m.beginning(c.Namespace) {
		codes = append(codes, interlock.CodeFutureVersion)
	}
	if c.Priority < -interlock.MaxPriority || c.Priority > interlock.MaxPriority {
		codes = append(codes, interlock.CodeInvalidPriority)
	}
	return codes
}

// wrongClaims names the rules that claims break. Of the modes with a count only
// those given may be asked for, and what a lease has already it may keep.
func (m *model) wrongClaims(
	head *engine.Head, had, asked []interlock.Claim, group string, counted ...interlock.Mode,
) (codes []interlock.Code) {
	claims := m.normal(head.Namespace, asked)
	if had == nil && !actsFor(principalOf(head.Actor), group) {
		codes = append(codes, interlock.CodeForbidden)
	}
	if len(claims) == 0 || len(claims) > interlock.MaxClaims {
		codes = append(codes, interlock.CodeTooManyClaims)
	}
	for i, claim := range claims {
		if _, err := engine.ParseKey(string(claim.Key)); err != nil {
			return append(codes, interlock.CodeInvalidKey)
		}
		if slices.ContainsFunc(claims[:i], func(other interlock.Claim) bool { return other.Key == claim.Key }) {
			codes = append(codes, interlock.CodeDuplicateClaim)
		}
		codes = append(codes, reserved(claim.Key, principalOf(head.Actor))...)
		if claim.Mode > interlock.Exclusive && !slices.Contains(counted, claim.Mode) {
			codes = append(codes, interlock.CodeInvalidMode)
		}
		if claim.Mode == interlock.Barrier && (len(claims) > 1 || claim.Count < 2 || claim.Count > interlock.MaxParties) {
			codes = append(codes, interlock.CodeInvalidRequest)
		}
		if claim.Mode == interlock.Member && (len(claims) > 1 || claim.Count < 1 || claim.Count > interlock.MaxParts) {
			codes = append(codes, interlock.CodeInvalidRequest)
		}
		if _, err := engine.ParseKey(string(claim.Key) + "/0"); claim.Mode == interlock.Member && err != nil {
			codes = append(codes, interlock.CodeInvalidKey)
		}
		if claim.Mode == interlock.Permits && claim.Count > 0 && permits(had, claim.Key) >= int(claim.Count) ||
			claim.Mode != interlock.Permits && coversAll(had, []interlock.Claim{claim}) {
			continue
		}
		codes = append(codes, m.wrongWithPattern(head, claim, group)...)
	}
	return codes
}

// covering returns the leases of the same flow that each cover all of r's claims, or one of the
// alternatives. A lease in grace does no new work, and the holder does not know of an offer
// yet, so they are left out.
func (m *model) covering(r *request) (list []*request) {
	if r.session == nil {
		return nil
	}
	for _, q := range m.requests {
		lacks := func(c interlock.Claim) bool { return !coversAll(q.claims, []interlock.Claim{c}) || m.spends(r.ns, c) }
		some := slices.ContainsFunc(r.claims, func(c interlock.Claim) bool { return !lacks(c) })
		enough := !slices.ContainsFunc(r.claims, lacks) || r.ask.Any && some
		if q.phase == held && q.member == nil && q.party() == r.party() && enough {
			list = append(list, q)
		}
	}
	return list
}

// spends reports whether a claim takes tokens, which every new request does anew.
func (m *model) spends(ns interlock.Namespace, c interlock.Claim) bool {
	p := m.pattern(ns, c.Key)
	return c.Mode == interlock.Permits && p != nil && p.Rate > 0
}

func (m *model) highestNum() (num uint64) {
	num = m.lowest
	for _, r := range m.requests {
		num = max(num, r.num)
	}
	for _, t := range m.tasks {
		num = max(num, t.num)
	}
	return num
}

// made is the request that cmd would make, nil when it makes none.
func (m *model) made(cmd engine.Command, num uint64) *request {
	if m.coming != nil {
		m.coming.num = num
		return m.coming
	}
	switch c := cmd.(type) {
	case *engine.Acquire:
		return m.newRequest(c, num)
	case *engine.StartRun:
		return m.newRun(c, num)
	case *engine.Convert:
		return m.newConversion(c, num)
	case *engine.Arrive:
		return m.newArrival(c, num)
	case *engine.Declare:
		if r := m.newDeclared(c, num); r != nil {
			return r
		}
	}
	return nil
}

// idOf is the id that a command brings for the request that it makes.
func idOf(cmd engine.Command) (id [16]byte, attach bool) {
	switch c := cmd.(type) {
	case *engine.Acquire:
		return c.ID, c.Attach
	case *engine.StartRun:
		return c.ID, c.Attach
	case *engine.Convert:
		return c.ID, c.Attach
	case *engine.Arrive:
		return c.ID, c.Attach
	case *engine.Declare:
		return c.ID, c.Attach
	}
	return id, false
}
