package client

import (
	"bytes"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// session is a session with the server, over any number of links. Client.mu
// guards it.
type session struct {
	id    interlock.SessionID
	name  string
	agent string
	ttl   time.Duration
	slot  uint32

	window  window
	waits   map[uint64]*call             // by the number of the second answer, which ends the wait
	tickets map[interlock.TicketID]*call // the same calls by their place in line
	leases  map[interlock.LeaseID]*grant
	leaving map[interlock.LeaseID]struct{} // a release is on its way
	// followers are the calls in waits that wait for the end of a task.
	followers map[*call]struct{}

	beatAt   time.Time     // when the last answered heartbeat was made
	beats    uint64        // how many were made
	beatSent time.Time     // when the last one was made
	nextBeat time.Time     // when the next is due
	shortest time.Duration // the shortest ttl of any lease or wait
	check    time.Time     // no lease is over by our own clock before; zero for never
	told     string        // the progress that the server knows
	// gaveUp are the flows that lost a lease by our own clock since the session was
	// last known to live.
	gaveUp map[string]bool
}

func newSession(s *proto.Session, slot uint32, since time.Time) *session {
	return &session{
		id: s.ID, name: s.Name, agent: s.Agent, ttl: s.TTL, slot: slot,
		waits: map[uint64]*call{}, tickets: map[interlock.TicketID]*call{}, followers: map[*call]struct{}{},
		leases: map[interlock.LeaseID]*grant{}, leaving: map[interlock.LeaseID]struct{}{}, gaveUp: map[string]bool{},
		beatAt: since, beatSent: since, shortest: s.TTL, check: since.Add(s.TTL), nextBeat: since.Add(beatAfter(s.TTL)),
	}
}

// answered takes note of a heartbeat that was answered and had been made at
// since. The server counts from when it arrived, which was later.
func (s *session) answered(since time.Time) {
	if since.After(s.beatAt) {
		s.beatAt = since
	}
}

// renewed takes note that the heartbeat of that number, made at since, has renewed the leases that it counted.
func (s *session) renewed(number uint64, since time.Time) {
	for _, g := range s.leases {
		if g.beats < number && since.After(g.beatAt) {
			g.beatAt = since
		}
	}
}

// known returns what the client knows of its leases, for a heartbeat: their number and digest, or with listed a list;
// nil if they are too many to be compared.
func (s *session) known(listed bool) *interlock.KnownLeases {
	k := &interlock.KnownLeases{Listed: listed}
	for id, g := range s.leases {
		switch {
		case g.of != nil: // the server counts no parts
		case listed:
			k.Leases = append(k.Leases, id)
		default:
			k.Add(id)
		}
	}
	if k.Count+len(k.Leases) > interlock.MaxKnown {
		return nil
	}
	slices.SortFunc(k.Leases, func(a, b interlock.LeaseID) int { return bytes.Compare(a[:], b[:]) })
	return k
}

// want makes sure that heartbeats come often enough for a lease with this ttl.
// It reports whether one must be sent before the lease is asked for: a session's
// leases live from its last heartbeat, not from their grant.
func (s *session) want(ttl time.Duration, now func() time.Time) (beat bool) {
	if ttl <= 0 || ttl >= s.ttl {
		return false
	}
	t := now()
	if ttl < s.shortest {
		s.shortest = ttl
	}
	if at := t.Add(beatAfter(ttl)); at.Before(s.nextBeat) {
		s.nextBeat = at
	}
	s.checkAt(t.Add(beatAfter(ttl)))
	return t.Sub(s.beatSent) > ttl/4
}

// beatFor makes sure that heartbeats come often enough for a lease that is held.
func (s *session) beatFor(g *grant) {
	ttl, heard := g.info.TTL, g.heardAt()
	s.shortest = min(s.shortest, ttl)
	if at := heard.Add(beatAfter(ttl)); at.Before(s.nextBeat) {
		s.nextBeat = at
	}
	s.checkAt(heard.Add(ttl))
}

// hurry makes the next heartbeat come soon if it has progress to report that a lease depends
// on: within an eighth of the shortest stall after the last one, so that an agent may report as
// often as it likes. It reports whether that is so.
func (s *session) hurry(progress string) bool {
	var stall time.Duration
	for _, g := range s.leases {
		if g.stall > 0 && (stall == 0 || g.stall < stall) {
			stall = g.stall
		}
	}
	if stall == 0 || progress == s.told {
		return false
	}
	if at := s.beatSent.Add(stall / 8); at.Before(s.nextBeat) {
		s.nextBeat = at
	}
	return true
}

// checkAt has the leases looked at no later than t.
func (s *session) checkAt(t time.Time) {
	if t.Before(s.check) {
		s.check = t
	}
}

// add registers a lease that was granted to a call, and returns its handle-to-be. Its ttl may be shorter than the time
// since the last heartbeat, so it counts from its grant.
func (s *session) add(
	c *Client, k *call, lease *interlock.Lease, packet *interlock.Packet, at interlock.At,
) *grant {
	g := &grant{c: c, s: s, id: lease.ID, flow: lease.Flow, refs: 1, beatAt: s.beatAt, beats: s.beats}
	s.leases[g.id] = g
	if now := c.now(); now.Sub(s.beatAt) > lease.TTL/2 {
		if g.from = k.since; k.phase == standing {
			g.from = now.Add(-lease.TTL / 2) // it was granted a moment ago
		}
	}
	g.update(lease, packet, at)
	g.asked(lease.Yield)
	return g
}

// lost reports to a lease's holder that it is gone. ended means that nothing is left to be
// released.
func (s *session) lost(g *grant, why *interlock.Error, ended bool) {
	delete(s.leases, g.id)
	g.lose(why)
	g.ended = g.ended || ended
	if g.isMember() {
		s.disown(g, why, ended)
	}
}

// overdue drops the leases that are over by this machine's clock, and returns when to look
// again.
func (s *session) overdue(now time.Time) (gone []*grant) {
	shortest, check := s.ttl, s.beatAt.Add(s.ttl)
	for _, g := range s.leases {
		end := g.giveUpAt()
		if !now.Before(end) {
			gone = append(gone, g)
			continue
		}
		shortest = min(shortest, g.info.TTL)
		if end.Before(check) {
			check = end
		}
	}
	for _, k := range s.tickets {
		if ttl := k.ttl(); ttl > 0 {
			shortest = min(shortest, ttl)
		}
	}
	for seq := s.window.low + 1; seq <= s.window.last; seq++ {
		if k := s.window.get(seq); k != nil && k.ttl() > 0 {
			shortest = min(shortest, k.ttl())
		}
	}
	if !check.After(now) {
		check = now.Add(beatAfter(shortest))
	}
	s.shortest, s.check = shortest, check
	return gone
}

// endedHere is the error of a holder when its lease ended by this machine's clock. Of the times
// that end a lease, only the end of max_hold is known to both sides beforehand, so the grace
// after it counts here too.
func endedHere(g *grant, now time.Time) *interlock.Error {
	e := &interlock.Error{
		Code: interlock.CodeExpired, Key: g.key(), At: g.at,
		Advice: interlock.Advice{
			Action: interlock.ActReRead, Message: "write nothing more under the lease; acquire again and read again",
		},
	}
	lease, silent := "the lease on "+string(g.key()), now.Sub(g.heardAt())
	capped := !g.capAt.IsZero() && !now.Before(g.capAt)
	grace := g.capAt.Add(g.info.Grace).Sub(now).Round(time.Millisecond)
	switch {
	case silent >= g.info.TTL:
		e.EndedBy, e.Message = "ttl", lease+" is considered lost: no server confirmed a heartbeat for "+
			silent.Round(time.Millisecond).String()+
			"; write nothing more under it, and acquire again when the server can be reached"
	case capped && grace > 0:
		e.Code, e.EndedBy, e.Message = interlock.CodeInGrace, "max_hold", lease+
			" reached its max_hold; commit finished work and release it within "+grace.String()
		e.Advice = interlock.Advice{
			Action:  interlock.ActStop,
			Message: "start nothing new; commit finished work and release within " + grace.String(),
		}
	case capped:
		e.EndedBy, e.Message = "max_hold", lease+" reached its max_hold; write nothing more under it"
	default:
		e.EndedBy, e.Message = "stall", "no progress was reported for so long that "+lease+
			" counts as stalled; write nothing more under it"
	}
	return e
}
