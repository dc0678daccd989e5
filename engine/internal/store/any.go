package store

import (
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
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

// EachAlternative yields what of r stands in line, or would: its alternatives, or r itself. It is
// granted when nothing blocks one of them.
func (r *Request) EachAlternative(yield func(*Request) bool) {
	if !r.Any {
		yield(r)
		return
	}
	for _, b := range r.Alternatives {
		if !yield(b) {
			return
		}
	}
}

// Whole is the request that r is a branch of, or r itself.
func (r *Request) Whole() *Request {
	if r.Parent != nil {
		return r.Parent
	}
	return r
}

// Resolve finds out what r needs, for any of several claims by a branch for each.
func (st *State) Resolve(r *Request) {
	r.NS.season(r.ID)
	if !r.Any {
		r.need()
		return
	}
	if r.FlowState == nil {
		r.FlowState = &FlowState{}
	}
	r.MutableExt().Alternatives = make([]*Request, len(r.Claims()))
	for i := range r.Claims() {
		b := st.NewRequest()
		more := b.more
		*b = *r
		b.RequestExt, b.Any, b.Pos, b.more = &RequestExt{Parent: r, Guest: r.Guest}, false, int32(i), more
		b.SetClaims(r.Claims()[i : i+1])
		b.need()
		r.Alternatives[i] = b
	}
}

// ChooseAlternative makes r a request for the claim of one of its ways alone.
func (st *State) ChooseAlternative(r, way *Request) {
	if way == r {
		return
	}
	for _, m := range way.Needs() {
		m.Req = r
		r.addNeed(m)
	}
	way.forgetNeeds()
	r.SetClaims(slices.Clone(way.Claims()))
	st.dropAlternatives(r)
}

// dropAlternatives drops the alternatives of r. It keeps their first claim.
func (st *State) dropAlternatives(r *Request) {
	if !r.Any {
		return
	}
	for _, b := range r.Alternatives {
		st.dropWait(b)
		st.Discard(b)
	}
	r.Any, r.Alternatives = false, nil
	if r.Flow() == nil {
		r.FlowState = nil
	}
	r.SetClaims(slices.Clone(r.Claims()[:1]))
}

// FreeWay returns the first of r's ways that nothing blocks, or nil.
func (r *Request) FreeWay() *Request {
	for way := range r.EachAlternative {
		if way.Blocker() < 0 {
			return way
		}
	}
	return nil
}

// wayTo returns the alternative of r that claims exactly the given claims, or nil.
func (r *Request) wayTo(claims []interlock.Claim) *Request {
	for way := range r.EachAlternative {
		if slices.Equal(way.Claims(), claims) {
			return way
		}
	}
	return nil
}

// Covered returns the lease of r's own flow that already covers one of r's alternatives, or
// nil.
func (r *Request) Covered() *Request {
	for way := range r.EachAlternative {
		if lease := way.coveredBy(); lease != nil {
			return lease
		}
	}
	return nil
}

// timesAt counts the alternatives of r that have a need with m's node and mode.
func (r *Request) timesAt(m *Need) (n int) {
	if !r.Any || lockmode.Conflicts[m.Mode].Has(m.Mode) { // that is only wanted of a claimed key
		return 1
	}
	for _, b := range r.Alternatives {
		if o := b.needAt(m.Node); o != nil && o.Mode == m.Mode {
			n++
		}
	}
	return n
}

// MemberLists returns what the patterns that list members say of them, of the first few
// patterns by name.
func (s *Namespace) MemberLists() (list []string) {
	const most = 8
	if s == nil {
		return nil
	}
	byName := slices.SortedFunc(
		slices.Values(s.Patterns), func(a, b *Policy) int { return strings.Compare(a.Name, b.Name) },
	)
	for _, p := range byName {
		if len(p.Members) > 0 && len(list) < most {
			list = append(list, p.Members[0])
		}
	}
	return list
}

// SoonestAlternative returns the alternative, among r's first MaxClaims, with the earliest
// expected grant.
func (r *Request) SoonestAlternative() (best *Request) {
	if !r.Any {
		return r
	}
	var least time.Duration
	for _, b := range r.Alternatives[:min(len(r.Alternatives), interlock.MaxClaims)] {
		if eta := b.Ticket().ETA; best == nil || eta < least {
			best, least = b, eta
		}
	}
	return best
}

// Conflict describes the blockers of the alternative of r that will probably be free first, or returns
// nil if nothing blocks it.
func (r *Request) Conflict() *Conflict {
	way := r.SoonestAlternative()
	if i := way.Blocker(); i >= 0 {
		return way.ConflictAt(i)
	}
	return nil
}

// Try enqueues r tentatively, without journaling, so that callers can compute its blockers.
func (st *State) Try(r *Request) {
	r.Granted = st.Clock
	st.Trial = Wait{Only: [1]QueueEntry{{Req: r}}}
	r.Wait = &st.Trial
	r.Wait.Rank = r.Standing()
	st.Resolve(r)
	st.Visited += len(r.Needs())
	r.SetScore()
}
