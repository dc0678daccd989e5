package store

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/record"
)

// Becomes returns the lease that r is when it is granted.
func (r *Request) Becomes() *Request {
	if r.Base != nil {
		return r.Base
	}
	return r
}

// EndOfConversion returns the reason for ending the conversion of a lease that is no longer
// held. Parking a lease abandons its conversion.
func (r *Request) EndOfConversion() record.Reason {
	if r.IsParked() {
		return record.ByLeaving
	}
	return record.ByBase
}

// Has reports whether one claim is among what a lease's claims give. Of permits it
// has those that it took, and no tokens are taken for them again.
func (r *Request) Has(want interlock.Claim) bool {
	if want.Mode.Counts() {
		return countIn(r.Claims(), want) >= want.Count
	}
	return r.gives([]interlock.Claim{want})
}

// countIn is the count of the claim on the same key in the same mode, 0 for none.
func countIn(claims []interlock.Claim, want interlock.Claim) uint32 {
	for _, have := range claims {
		if have.Key == want.Key && have.Mode == want.Mode {
			return have.Count
		}
	}
	return 0
}

// ClaimsAll reports whether r claims all these keys, in any mode.
func (r *Request) ClaimsAll(claims []interlock.Claim) bool {
	for _, want := range claims {
		if !slices.ContainsFunc(r.Claims(), func(have interlock.Claim) bool { return have.Key == want.Key }) {
			return false
		}
	}
	return true
}

// changeClaims sets the claims and the fence of a lease to those of ev, and passes the dropped
// keys on.
func (st *State) changeClaims(r *Request, ev *record.Event, changed bool) {
	st.Fence = max(st.Fence, ev.Fence)
	if t := r.Task; t != nil && t.Request == r {
		t.Going.Fence = ev.Fence
	}
	indexed := r.FlowState != nil && r.FlowState.Index != nil
	if indexed {
		r.FlowState.add(r, false, ^uint32(0))
	}
	r.NS.Disturb()
	r.NS.Agenda.Relieved(r.FlowState, r)
	r.letGo()
	r.Fence, r.Changed = ev.Fence, changed
	gone, before := slices.Clone(r.Needs()), r.Claims()
	had := make([]bool, len(ev.Claims))
	for i, c := range ev.Claims {
		had[i] = !c.Mode.Counts() && r.Has(c)
	}
	r.forgetNeeds()
	r.SetClaims(ev.Claims)
	r.need()
	r.take()
	if indexed {
		r.FlowState.add(r, false, 1)
	}
	for i := range r.Needs() {
		switch m := &r.Needs()[i]; {
		case m.Counts == interlock.Permits:
			if now, had := r.CountOf(m), countIn(before, r.Claims()[m.Claim]); now > had {
				m.spend(ev.At, now-had)
			}
		case m.Claimed && !had[m.Claim]:
			m.spend(ev.At, 0)
		}
	}
	st.wroteAndLeft(r.NS, slices.DeleteFunc(slices.Clone(before), r.Has))
	st.changedAt(gone)
	for i := len(gone) - 1; i >= 0; i-- {
		gone[i].Node.drop()
	}
}

// wroteAndLeft records, for the waiters on the claims, that a possible writer is gone.
func (st *State) wroteAndLeft(s *Namespace, claims []interlock.Claim) {
	claims = slices.DeleteFunc(claims, func(c interlock.Claim) bool { return !lockmode.Writing.Has(c.Mode) })
	if len(claims) == 0 {
		return
	}
	st.Writes++
	for _, c := range claims {
		for key, ok := string(c.Key), true; ok; key, ok = keypath.Parent(key) {
			if n := s.NodeAt(key); n != nil && n.Line != nil {
				n.Line.wrote = st.Writes
			}
		}
		if n := s.NodeAt(string(c.Key)); c.Mode == lockmode.X && n.Line != nil {
			n.Line.wroteAll = st.Writes
		}
	}
}

// evolveConversion moves the claims of a granted conversion to its lease.
func (st *State) evolveConversion(ev *record.Event, r *Request) error {
	l := r.Base
	if l.Phase != Held || l.Conversion != r {
		return errUnknown
	}
	changed := r.SawWrites()
	r.unline()
	l.MutableExt().Conversion = nil
	l.setGeneration(ev.Generation)
	l.handOver(r, ev.Version)
	st.changeClaims(l, ev, changed)
	r.Fence, r.MutableExt().EndCause = ev.Fence, &endCause{Base: l.Num, BaseID: l.ID}
	st.archive(r, record.ByConversion)
	return nil
}

// converts makes r, which an event tells of, the conversion of a lease.
func (r *Request) converts(ev *record.Event) error {
	l := r.NS.Live(ev.BaseID)
	if ev.Kind != record.Queued || l == nil || l.Num != ev.Base || l.Phase != Held || l.Conversion != nil ||
		l.Flow() != r.Flow() {
		return errUnknown
	}
	r.MutableExt().Base, r.FlowState = l, l.AsParty()
	return nil
}
