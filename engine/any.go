package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/message"
)

// A request for any one of several claims.
//
// When it arrives, it gets the first alternative that is free. If none is, it stands in line
// for all of them: for each by a request of its own, an alternative, that is in the lines and
// among its flow's waits, and nowhere else. All alternatives have the number and the score of
// their parent, so none is before another, and none blocks another. The first one that nothing
// blocks gets the parent admitted with its claim. All of them leave the lines then, which may
// help others.
//
//	             ┌ branch: a ── line of a
//	request ─────┼ branch: b ── line of b ── free first: the request gets b
//	(the parent) └ alternative: c ── line of c
//
// The journal has the parent alone: record.Queued has all alternatives, record.Admitted the
// granted one.

// eachAlternative yields what of r stands in line, or would: its alternatives, or r itself. It is
// granted when nothing blocks one of them.
func (r *request) eachAlternative(yield func(*request) bool) {
	if !r.any {
		yield(r)
		return
	}
	for _, b := range r.alternatives {
		if !yield(b) {
			return
		}
	}
}

// whole is the request that r is a branch of, or r itself.
func (r *request) whole() *request {
	if r.parent != nil {
		return r.parent
	}
	return r
}

// resolve finds out what r needs, for any of several claims by a branch for each.
func (e *State) resolve(r *request) {
	r.ns.season(r.id)
	if !r.any {
		r.need()
		return
	}
	if r.party == nil {
		r.party = &flowState{}
	}
	r.mutableExt().alternatives = make([]*request, len(r.claims()))
	for i := range r.claims() {
		b := e.newRequest()
		more := b.more
		*b = *r
		b.requestExt, b.any, b.pos, b.more = &requestExt{parent: r, guest: r.guest}, false, int32(i), more
		b.setClaims(r.claims()[i : i+1])
		b.need()
		r.alternatives[i] = b
	}
}

// chooseAlternative makes r a request for the claim of one of its ways alone.
func (e *State) chooseAlternative(r, way *request) {
	if way == r {
		return
	}
	for _, m := range way.needs() {
		m.req = r
		r.addNeed(m)
	}
	way.forgetNeeds()
	r.setClaims(slices.Clone(way.claims()))
	e.dropAlternatives(r)
}

// dropAlternatives drops the alternatives of r. It keeps their first claim.
func (e *State) dropAlternatives(r *request) {
	if !r.any {
		return
	}
	for _, b := range r.alternatives {
		e.dropWait(b)
		e.discard(b)
	}
	r.any, r.alternatives = false, nil
	if r.flow() == nil {
		r.party = nil
	}
	r.setClaims(slices.Clone(r.claims()[:1]))
}

// freeWay returns the first of r's ways that nothing blocks, or nil.
func (r *request) freeWay() *request {
	for way := range r.eachAlternative {
		if way.blocker() < 0 {
			return way
		}
	}
	return nil
}

// wayTo returns the alternative of r that claims exactly the given claims, or nil.
func (r *request) wayTo(claims []interlock.Claim) *request {
	for way := range r.eachAlternative {
		if slices.Equal(way.claims(), claims) {
			return way
		}
	}
	return nil
}

// covered returns the lease of r's own flow that already covers one of r's alternatives, or
// nil.
func (r *request) covered() *request {
	for way := range r.eachAlternative {
		if lease := way.coveredBy(); lease != nil {
			return lease
		}
	}
	return nil
}

// timesAt counts the alternatives of r that have a need with m's node and mode.
func (r *request) timesAt(m *need) (n int) {
	if !r.any || lockmode.Conflicts[m.mode].Has(m.mode) { // that is only wanted of a claimed key
		return 1
	}
	for _, b := range r.alternatives {
		if o := b.needAt(m.node); o != nil && o.mode == m.mode {
			n++
		}
	}
	return n
}

// soonestAlternative returns the alternative, among r's first MaxClaims, with the earliest
// expected grant.
func (e *Engine) soonestAlternative(r *request) (best *request) {
	if !r.any {
		return r
	}
	var least time.Duration
	for _, b := range r.alternatives[:min(len(r.alternatives), interlock.MaxClaims)] {
		if eta := e.ticket(b).ETA; best == nil || eta < least {
			best, least = b, eta
		}
	}
	return best
}

// inTheWay describes what blocks r where it will probably be free first; nil when
// nothing does.
func (e *Engine) inTheWay(r *request) *Conflict {
	way := e.soonestAlternative(r)
	if i := way.blocker(); i >= 0 {
		return e.conflict(way, i)
	}
	return nil
}

// expand puts the keys that a prefix stands for in its place.
func (e *Engine) expand(c *Acquire) (interlock.Code, *message.Text) {
	if c.Prefix == "" {
		return "", nil
	}
	if len(c.Claims) > 0 {
		return interlock.CodeInvalidRequest, message.New(message.ClaimsAndPrefix)
	}
	if code, problem := checkTexts(text{"prefix", c.Prefix, interlock.MaxKeyBytes}); code != "" {
		return code, problem
	}
	for _, key := range e.pendingWork.ns.membersWith(c.Prefix) {
		c.Claims = append(c.Claims, interlock.Claim{Key: key, Mode: interlock.Exclusive})
	}
	if len(c.Claims) == 0 {
		return interlock.CodeUnknownPattern, message.New(message.NoMemberWithPrefix, message.Str(c.Namespace), message.Str(c.Prefix))
	}
	c.Any = true
	return "", nil
}

// memberLists returns what the patterns that list members say of them, of the first few
// patterns by name.
func (s *namespace) memberLists() (list []string) {
	const most = 8
	if s == nil {
		return nil
	}
	byName := slices.SortedFunc(slices.Values(s.patterns), func(a, b *policy) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range byName {
		if len(p.Members) > 0 && len(list) < most {
			list = append(list, p.Members[0])
		}
	}
	return list
}
