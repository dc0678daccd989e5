package store

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// Lease describes r as its holder sees it.
func (r *Request) Lease() (l interlock.Lease) {
	r.DescribeLease(&l)
	return l
}

// DescribeLease writes r as its holder sees it to l, which is empty. A lease is large, so the most
// frequent answers are written in place.
func (r *Request) DescribeLease(l *interlock.Lease) {
	l.ID, l.Fence, l.Claims, l.Purpose = r.ID, r.Fence, r.Claims(), r.Purpose
	l.TTL, l.Grace, l.LockDelay, l.Group, l.Generation = r.TTL, r.Grace, r.LockDelay, r.Group, r.Generation
	l.State, l.Changed = r.LeaseState(), r.Changed
	if f := r.Flow(); f != nil {
		l.Agent, l.Session, l.Flow = f.Sess.Agent, f.Sess.Name, f.Name
	} else {
		l.Agent = r.AgentName()
	}
	if r.Phase == InGrace || r.IsOver() {
		l.EndedBy = r.Reason.String()
	}
	if r.Phase != Over {
		l.ExpiresIn = max(0, r.PhaseEnd().Sub(r.NS.Now()))
	}
	if !r.IsOver() {
		l.Parking = r.ParkStatus()
		if d := r.Rare; d != nil {
			l.Decision = d.Decision
		}
		if r.MaxHold > 0 && r.IsRunning() {
			l.MaxHoldIn = max(1, r.Granted.Add(r.MaxHold).Sub(r.NS.Now()))
		}
		if d := r.Stall; d > 0 && r.IsRunning() {
			l.StallIn = max(1, r.StallSince().Add(d).Sub(r.NS.Now()))
		}
		l.Yield, l.Parts = r.yield(), r.parts()
		if d := r.Rare; d != nil && !r.IsPutAside() {
			l.Moved = d.Moved
		}
		if r.Phase == Waiting && r.GoesBack() {
			l.Fence = r.Rare.Parking.Fence
		}
		if r.NS.Notes.Len() > 0 {
			l.Notes = r.notes()
		}
	}
}

// PhaseEnd returns when r's present phase ends unless its holder sends a heartbeat.
func (r *Request) PhaseEnd() Time {
	switch r.Phase {
	case Offered:
		return r.Renewed.Add(r.OfferTTL())
	case InGrace:
		end := r.Renewed.Add(r.Grace)
		if r.MaxHold > 0 && (r.Reason == record.ByPreemption || r.Reason == record.ByDeadlock) {
			end = min(end, r.Granted.Add(r.MaxHold)) // taking a lease away does not lengthen it
		}
		return end
	case Closed:
		return r.Renewed.Add(r.LockDelay)
	}
	if r.IsPutAside() {
		return min(r.Rare.Parking.Until, r.KeptUntil())
	}
	if r.HoldsOn() {
		return r.Share.Member.PhaseEnd()
	}
	end := min(r.TtlEnd(), r.timedEnd())
	if sess := r.Session(); sess != nil { // it takes its leases along
		end = min(end, sess.End())
	}
	return end
}

// LeaseState returns the state of r as a lease: soft from the time when its holder is warned.
func (r *Request) LeaseState() interlock.LeaseState {
	switch {
	case r.IsOver():
		return interlock.Ended
	case r.Phase == InGrace:
		return interlock.Grace
	case r.IsPutAside():
		return interlock.Parked
	case r.NS.Now() >= r.Beat().Add(SoftAt(r.TTL)), r.NS.Now() >= r.TimedSoft():
		return interlock.Soft
	}
	return interlock.Held
}

// ParkStatus describes the parking of a lease, also while its resumption stands in line. It returns
// nil for a lease that is not parked.
func (r *Request) ParkStatus() *interlock.ParkStatus {
	if !r.IsPutAside() {
		return nil
	}
	p := r.Rare.Parking
	return &interlock.ParkStatus{
		Reason: p.Reason, Since: r.NS.Now().Sub(p.Since), Left: max(0, r.PhaseEnd().Sub(r.NS.Now())),
		Freed: r.Phase != Parked,
	}
}

// yield describes the request that asks r's holder to yield, as the holder sees it; nil if none does. A request asks
// when it arrives and whenever another lease gets in its way, so no holder is asked before it has the lease. An
// operator may ask later than that.
func (r *Request) yield() *interlock.Yield {
	x := r.Asker()
	if x == nil {
		return nil
	}
	y := &interlock.Yield{
		Agent: x.AgentName(), Flow: x.FlowName(), Purpose: x.Purpose, Priority: int(x.Priority),
		Since:   r.NS.Now().Sub(max(x.Arrived(), r.Granted)),
		Revoked: r.Phase == InGrace && r.Reason == record.ByPreemption,
	}
	if s := x.Session(); s != nil {
		y.Session = s.Name
	}
	return y
}

// parts lists the parts of the partitioned key that member r holds.
func (r *Request) parts() (list []interlock.Part) {
	m := r.Membership()
	if m == nil || m.Node.Divided == nil || r.IsOver() {
		return nil
	}
	for i := range m.Node.Divided.Parts {
		s := &m.Node.Divided.Parts[i]
		l := s.Held
		if l == nil || l.Share.Member != r {
			continue
		}
		p := interlock.Part{
			Key: l.Claims()[0].Key, Lease: l.ID, Fence: l.Fence, Stop: l.Phase == InGrace || s.Next != nil,
		}
		if l.Phase == InGrace {
			p.Left = max(0, l.PhaseEnd().Sub(r.NS.Now()))
		}
		list = append(list, p)
	}
	return list
}
