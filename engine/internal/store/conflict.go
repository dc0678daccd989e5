package store

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/record"
)

// The answer to a refused or waiting caller: its blockers, and the expected wait.

// ConflictAt describes what blocks r at its need with index i.
func (r *Request) ConflictAt(i int) *Conflict {
	m := &r.Needs()[i]
	key := r.ClaimAt(i).Key
	c := &Conflict{Conflict: interlock.Conflict{Key: key, Kind: interlock.OtherAgent}}
	against := lockmode.Conflicts[m.Mode]
	v := r.NS.Agenda.Glance(r)
	defer v.Done()
	v.At(m.Node, against)
	switch {
	case len(v.Found) > 0:
		if !m.Claimed {
			c.Kind = interlock.AncestorHeld
		} else if sess := v.Found[0].Session(); sess != nil && sess == r.Session() {
			c.Kind = interlock.SameAgentOtherFlow
		}
	case m.Claimed:
		if v.Below(m.Node, against); len(v.Found) > 0 {
			c.Kind = interlock.DescendantHeld
		}
	}
	if len(v.Found) > 0 && v.Found[0].Phase == Closed {
		c.Kind = interlock.LockDelayed
	}
	line := r.ClaimNode(i).Line
	c.Line.Length = line.Length()
	c.Line.ETA = m.Node.ETA(v.Found, c.Line.Length)
	if len(v.Found) == 0 && (m.Counts == interlock.Permits || m.LacksToken()) {
		r.shortConflict(c, m, &v)
	}
	if len(v.Found) == 0 && m.Counts == interlock.Barrier {
		c.Kind, c.Line.ETA = interlock.PartiesMissing, 0
		for _, x := range r.Absent(m) {
			v.Add(x.Barrier())
		}
	}
	if len(v.Found) == 0 && c.Kind == interlock.OtherAgent {
		r.lineConflict(c, m, &v)
	}
	c.Holders, c.More = v.Holders(), v.More
	return c
}

// lineConflict describes r's blockers at m if all of them are waiters ahead: their number, and the
// blockers of the first one.
func (r *Request) lineConflict(c *Conflict, m *Need, v *Viewer) {
	first := r.Earlier(m)
	if first == nil {
		return
	}
	c.Ahead, c.LineKey = max(1, r.CountEarlier(m)), interlock.Key(m.Node.Key)
	if !m.Claimed {
		c.Kind, c.Line.Length = interlock.AncestorHeld, c.Ahead
	}
	v.behind(first)
	c.Line.ETA = m.Node.ETA(v.Found, c.Ahead)
}

// shortConflict describes the permits or tokens of a key that r lacks, if any.
func (r *Request) shortConflict(c *Conflict, m *Need, v *Viewer) {
	c.Capacity, c.Group = r.NS.Capacity(m.Node.Key, r.NS.Now()), r.Group
	if m.LacksToken() {
		c.Kind, c.Line.ETA = interlock.RateUsed, m.untilToken()
		return
	}
	switch r.Short(m) {
	case ShortOfPermits:
		c.Kind = interlock.CapacityUsed
	case ShortOfTokens:
		c.Kind = interlock.RateUsed
	default:
		return
	}
	v.except = nil
	if c.Kind == interlock.CapacityUsed {
		v.permits(m.Node)
	}
	c.Line.ETA = r.expectPermits(m)
}

// Holder describes the holder of r's claim c as others see it.
func (r *Request) Holder(c interlock.Claim) interlock.Holder {
	h := interlock.Holder{
		Agent: r.AgentName(), Flow: r.FlowName(), Purpose: r.Purpose, Key: c.Key, Mode: c.Mode, Count: c.Count,
		Fence: r.Fence, Held: r.NS.Now().Sub(r.Granted), ExpiresIn: max(0, r.PhaseEnd().Sub(r.NS.Now())),
	}
	if r.Phase == InGrace || r.Phase == Closed {
		h.EndedBy = r.Reason.String()
	}
	h.Yield = r.yield()
	beat := r.Beat()
	if s := r.Session(); s != nil {
		h.Session = s.Name
		beat = max(beat, s.Renewed)
	}
	h.Progress, _ = r.LastProgress()
	h.HeartbeatAge = max(0, r.NS.Now().Sub(beat))
	h.Parking = r.ParkStatus()
	switch {
	case r.Phase == Parked:
		h.Liveness = interlock.LiveParked
	case r.Phase == Closed:
		h.Liveness = interlock.Closed
	case r.Phase == InGrace:
		h.Liveness = interlock.LiveGrace
	case r.Phase == Offered:
		h.Liveness = interlock.Offered
	case h.HeartbeatAge >= SoftAt(r.TTL):
		h.Liveness = interlock.Suspect
	case r.LeaseState() == interlock.Soft:
		h.Liveness = interlock.LiveSoft
	default:
		h.Liveness = interlock.Live
	}
	return h
}

// Ticket describes r's place in line, at the key with the most conflicting waiters ahead.
func (r *Request) Ticket() interlock.Ticket {
	t := interlock.Ticket{ID: r.ID, Position: 1}
	if r.Target != nil {
		return t // it stands in no line
	}
	at := 0
	for i := range r.Needs() {
		m := &r.Needs()[i]
		if !m.Claimed {
			continue
		}
		if p := 1 + r.CountEarlier(m); p > t.Position || t.Length == 0 {
			t.Position, t.Length, at = p, m.Node.Line.Length(), i
		}
	}
	t.ETA = r.ETA(&r.Needs()[at], t.Position-1)
	if b := r.Blocker(); b >= 0 && !r.Needs()[b].Claimed { // an ancestor blocks it first
		m := &r.Needs()[b]
		t.ETA = max(t.ETA, r.ETA(m, r.CountEarlier(m)))
	}
	return t
}

// ETA estimates how long r will wait at m when ahead waiters go first: the rest of the present
// holders' usual time, plus the usual time for each of those ahead. Where nothing was observed,
// a holder's ttl stands for the usual time. The arrival of a barrier's absent parties cannot be
// estimated: that is 0.
func (r *Request) ETA(m *Need, ahead int) time.Duration {
	v := r.NS.Agenda.Glance(r)
	defer v.Done()
	v.against(m)
	switch {
	case len(v.Found) > 0:
	case m.Counts == interlock.Permits:
		return r.expectPermits(m)
	case ahead == 0 && m.LacksToken():
		return m.untilToken()
	}
	if m.Counts == interlock.Barrier {
		if len(v.Found) == 0 {
			return 0
		}
		ahead = 0
	}
	if len(v.Found) == 0 {
		v.behind(r.Earlier(m))
	}
	return m.Node.ETA(v.Found, ahead)
}

// untilToken returns how long a need for a lock waits for its token.
func (m *Need) untilToken() time.Duration {
	return min(maxETA, m.Node.pooled.TokensAt(1).Sub(m.Node.NS.Now()))
}

// expectPermits estimates when r will have its permits and tokens: those of a
// capacity come back evenly over the usual time of a hold, tokens at their rate.
func (r *Request) expectPermits(m *Need) (eta time.Duration) {
	p := m.Node.Pool()
	if p.Policy == nil {
		return 0
	}
	wanted := int64(min(p.Ahead(r)+uint64(r.CountOf(m)), interlock.MaxCount))
	if capacity := int64(p.Policy.Capacity); capacity > 0 {
		usual := m.Node.NS.Holds[record.Class(m.Node.Key)]
		for h := m.Node.First; h != nil && usual == 0; h = h.Next {
			if *r.NS.Agenda.objects++; h.Counts == interlock.Permits {
				usual = h.Req.TTL
			}
		}
		if usual == 0 {
			usual = interlock.DefaultTTL
		}
		back := func(missing, of int64) time.Duration {
			if missing <= 0 {
				return 0
			}
			return min(maxETA, max(usual/8, usual/time.Duration(of)*time.Duration(min(missing, int64(maxETA)/int64(usual)))))
		}
		eta = back(int64(min(p.Used, interlock.MaxCount))+wanted-capacity, capacity)
		if g := r.GroupAt(m); g != Unlisted && p.Policy.Groups[g].Max > 0 {
			most := int64(p.Policy.Groups[g].Max)
			mine := int64(min(p.Groups[g]+p.AheadIn(g, r)+uint64(r.CountOf(m)), interlock.MaxCount))
			eta = max(eta, back(mine-most, most))
		}
		if eta == 0 && r.Short(m) == ShortOfPermits { // the rest is reserved for other groups
			eta = back(int64(r.CountOf(m)), capacity)
		}
	}
	if p.Policy.Rate > 0 {
		tick := p.Policy.Tick()
		missing := min(wanted, int64(maxETA/tick)) - int64(p.Policy.BurstLimit())
		eta = max(eta, max(0, p.Full.Sub(r.NS.Now()))+tick*time.Duration(missing))
	}
	return min(maxETA, eta)
}

// ETA estimates the wait at n behind its holders and a number of waiters ahead. A holder is expected to
// end after the usual time. The rest of its hold is at least an eighth of the usual time or of the time
// it has held, whichever is longer: a hold that has exceeded the usual time by far is not about to end.
func (n *Node) ETA(holders []*Request, ahead int) time.Duration {
	usual := n.NS.Holds[record.Class(n.Key)]
	var left time.Duration
	for _, h := range holders {
		if usual == 0 {
			usual = h.TTL
		}
		if h.Phase == InGrace || h.Phase == Closed {
			left = max(left, h.PhaseEnd().Sub(n.NS.Now()))
		} else {
			held := n.NS.Now().Sub(h.Granted)
			left = max(left, usual-held, max(usual, held)/8)
		}
	}
	if usual == 0 {
		usual = interlock.DefaultTTL
	}
	usual = min(usual, maxETA/time.Duration(max(1, ahead)))
	return min(maxETA, max(0, left)+time.Duration(ahead)*usual)
}

// Situation describes the holders and the line of a key, for a refusal with another cause.
func (s *Namespace) Situation(key interlock.Key) *Conflict {
	c := &Conflict{Conflict: interlock.Conflict{Key: key}}
	if s == nil {
		return c
	}
	if n := s.NodeAt(string(key)); n != nil {
		v := Viewer{work: s.Agenda, limit: MaxShownHolders, shares: true}
		v.At(n, ^lockmode.Set(0))
		v.Above(n)
		c.Holders, c.More, c.Line.Length = v.Holders(), v.More, n.Line.Length()
		if len(v.Found) > 0 {
			c.Line.ETA = n.ETA(v.Found, c.Line.Length)
		}
	}
	return c
}
