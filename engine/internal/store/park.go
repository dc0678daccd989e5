package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/record"
)

// parkState is the record of a lease that was put aside.
type parkState struct {
	Since, Until Time
	Reason       string
	Writes       uint64          // Engine.writes when it was put aside
	Held         time.Duration   // for how long it had been held before
	Fence        interlock.Fence // that it had
	Asks         bool            // a person; not in journals before approvals of leases
	Asker        string          // the principal that parked it; "" without credentials
	Kept         bool            // the lease was resumed from it, and had kept its keys; not in older snapshots
}

// IsParked reports whether r is put aside.
func (r *Request) IsParked() bool { return r.Phase == Parked || r.Phase == Away }

// IsPutAside is IsParked also for a lease that stands in line to be resumed.
func (r *Request) IsPutAside() bool { return r.IsParked() || r.Phase == Waiting && r.GoesBack() }

// IsShared reports whether r's keys are held in modes that r would exclude with another holder:
// by its own flow, now or before.
func (r *Request) IsShared() bool {
	for i := range r.Needs() {
		m := &r.Needs()[i]
		for mode := lockmode.IS; mode <= lockmode.X; mode++ {
			others := *m.Node.granted.Of(mode)
			if mode == m.Mode {
				others--
			}
			if others > 0 && lockmode.Conflicts[m.Mode].Has(mode) {
				return true
			}
		}
	}
	return false
}

// RemembersParking is record.Event.Op of the resumption of a lease that kept its keys: Leave parks it
// again. Without it, as in older journals, Leave ends the lease.
const RemembersParking = 1

// KeptUntil returns when a parked lease that keeps its keys reaches its max_hold: the parked
// period counts, because others wait for its keys all the same. It then ends without a grace,
// since it has no active holder. For other leases it returns Never.
func (r *Request) KeptUntil() Time {
	if r.Phase != Parked || r.MaxHold == 0 {
		return record.Never
	}
	p := r.Rare.Parking
	return p.Since.Add(r.MaxHold - p.Held)
}

// evolveParked puts a lease aside, or back. In a snapshot one that is away never
// had its keys.
func (st *State) evolveParked(ev *record.Event, r *Request) error {
	if ev.Reason != 0 {
		return st.evolvePutBack(ev, r)
	}
	d := r.deal()
	p := &parkState{
		Since: ev.At, Until: ev.At.Add(ev.TTL), Reason: ev.Note, Held: ev.Held, Fence: ev.Fence, Asks: ev.Op == AsksPerson,
	}
	var err error
	if p.Asker, err = record.DecodePrincipal(ev.Blob); err != nil {
		return err
	}
	if ev.Queued { // it was resumed since
		d.Parking, p.Kept = p, ev.Changed
		return nil
	}
	if r.Phase != Held && r.Phase != Away {
		return errUnknown
	}
	if d.Arrived == 0 {
		d.Arrived = r.Granted.Add(-r.Waited)
	}
	if r.Phase == Held {
		st.detachFromSession(r)
		if r.Phase = Parked; ev.Freed {
			r.unask()
			st.giveBack(r)
			r.goAway()
		}
		r.expectBack()
	}
	d.Moved, d.Parking, d.Decision, p.Writes = nil, p, nil, st.Writes
	r.NS.putAside(r)
	r.setWindow(Window{AsOf: ev.AsOf})
	return nil
}

// evolveResumed brings a lease back, into its holder's hands or into the line.
func (st *State) evolveResumed(ev *record.Event, r *Request) error {
	if !r.IsParked() || ev.Queued && r.Phase != Away {
		return errUnknown
	}
	if r.Phase == Parked {
		r.unhold()
	}
	t := r.Conditions.Terms
	t.MaxWait = ev.MaxWait
	switch { // what is left of it
	case ev.MaxHold > 0:
		t.MaxHold = ev.MaxHold
	case t.MaxHold > 0: // its keys were freed; or in journals of the time when parking did not count
		t.MaxHold = max(1, t.MaxHold-r.Rare.Parking.Held)
	}
	if ev.Session != 0 {
		s := r.NS.ByNum[ev.Session]
		if s == nil {
			return errUnknown
		}
		r.Join(s.Flow(ev.Flow))
		t.TTL = s.Cap(t.TTL)
		if s.adapt(t.TTL); r.Guest != nil {
			r.Guest = nil
		}
	} else {
		r.MutableExt().Guest = &AnonymousCaller{r.AgentName(), ev.Actor}
	}
	r.Conditions = r.NS.Agree(t)
	r.Reason, r.Lead, r.Renewed, r.Warned, r.Spared, r.Unknown = 0, ev.Lead, ev.At, false, false, false
	if r.setEndCause(nil); r.Progress != nil {
		r.Progress = nil
	}
	r.Rare.Moved = r.MovedKeys(r.Rare.Parking.Writes)
	r.Changed = len(r.Rare.Moved) > 0
	if ev.Queued {
		r.Wait, r.Granted = st.newWait(), ev.At
		r.SetScore()
		st.enqueue(r)
		r.listWait()
		st.endAbsence(r)
		r.Phase, r.Fence, r.Waited = Waiting, 0, 0
		return nil
	}
	was := r.Phase
	if was == Away || ev.Op == RemembersParking {
		st.endAbsence(r) // it goes back if Leave crosses the grant
		r.Rare.Parking.Kept = was == Parked
	}
	r.Fence, r.Granted = ev.Fence, ev.At
	st.Fence = max(st.Fence, ev.Fence)
	if was == Away {
		r.spend(ev.At)
	} else if ev.Op != RemembersParking {
		st.endParking(r)
	}
	r.Phase = Held
	r.handOver(r, ev.Version)
	r.hold()
	return nil
}

func (r *Request) goAway() {
	r.Phase = Away
	r.NS.Away++
}

// expectBack keeps the keys of r, which is put aside, until endAbsence.
func (r *Request) expectBack() {
	for i := range r.Needs() {
		r.Needs()[i].Node.expect()
	}
}

// endParking forgets that r was put aside.
func (st *State) endParking(r *Request) {
	st.endAbsence(r)
	r.Rare.Parking = nil
}

// endAbsence ends that r is put aside.
func (st *State) endAbsence(r *Request) {
	st.Wake(r)
	if r.Phase == Away {
		r.NS.Away--
	}
	delete(r.NS.Aside, r.Rare.Parking.Fence)
	for i := range r.Needs() {
		r.Needs()[i].Node.expectNoMore()
	}
}

// MovedKeys returns the keys of r that others may have written since Engine.writes
// had a value, with those that are known to have been.
func (r *Request) MovedKeys(since uint64) (moved []interlock.Key) {
	for _, c := range r.Claims() {
		n := r.NS.NodeAt(string(c.Key))
		saw := slices.Contains(r.Rare.Moved, c.Key) || n.Line.wrote > since
		for ; n != nil && !saw; n = n.Parent() {
			saw = n.Line.wroteAll > since
		}
		if saw {
			moved = append(moved, c.Key)
		}
	}
	return moved
}

// AsksPerson is record.Event.Op of a parking that asks a person. A parking without it asks none,
// whatever its reason: it was made before leases were approvals.
const AsksPerson = 1

// ParkedAt is the place of a parked lease among the others of its namespace.
type ParkedAt struct {
	Time Time
	Num  uint64 // of its request; the earlier asked come first
}

func (a ParkedAt) Compare(b ParkedAt) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Num, b.Num))
}
