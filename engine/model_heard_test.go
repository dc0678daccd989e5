package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// heard records what is not journaled: signs of life, and listeners.
func (m *model) heard(cmd engine.Command, got *engine.Effect) error {
	head := cmd.Header()
	s := m.sessionByID(head.Namespace, head.Session)
	switch c := cmd.(type) {
	case *engine.Heartbeat, *engine.Attach:
		if got.Outcome != engine.Done {
			break
		}
		var left []*request
		if b, ok := c.(*engine.Heartbeat); !ok || b.Known == nil {
			for _, r := range m.inPhase(held) {
				r.unknown = r.unknown && r.session != s
			}
		}
		if b, ok := c.(*engine.Heartbeat); ok {
			wants := false
			if wants, left = m.compareKnown(s, b.Known); wants != got.WantsList {
				return fmt.Errorf("the heartbeat wants a list: %t", got.WantsList)
			}
			m.report(s, b.Progress)
		}
		s.beat = at(m.now)
		if _, ok := c.(*engine.Attach); ok {
			s.receiver, s.link = head.From, head.Link
		}
		if got.Session.ExpiresIn != s.ttl || got.Session.ID != s.id {
			return fmt.Errorf("a heartbeat gives a full ttl, and not %v", got.Session.ExpiresIn)
		}
		return m.checkLosses(s, left, got.Losses)
	case *engine.Acquire:
		if r := m.byID(head.Namespace, got.Lease.ID); r != nil && got.Lease.Reused && !got.Repeated {
			r.unknown = false
		}
	case *engine.Renew:
		if got.Outcome != engine.Granted {
			break
		}
		r := m.byID(head.Namespace, c.Lease)
		if r == nil {
			return errors.New("a lease was renewed that does not exist")
		}
		work := r // what is said of the work counts for this lease alone
		if r.member != nil {
			r = r.member
		}
		r.unknown = false
		if r.session != nil {
			r.session.beat = at(m.now)
		} else {
			r.beat = at(m.now)
		}
		work.report(m.now, c.Progress)
	case *engine.KeepAlive:
		if r := m.byID(head.Namespace, c.Ticket); s == nil && head.Session.IsZero() && r != nil && r.phase == waiting {
			s = r.session
		}
		ttl := time.Duration(0)
		if s != nil && !s.ended {
			s.beat, ttl = at(m.now), s.ttl
		}
		if got.Session.TTL != ttl {
			return fmt.Errorf("a session of ttl %v was kept alive, and the answer says %v", ttl, got.Session.TTL)
		}
	case *engine.OpenSession:
		if opened := m.sessionByID(head.Namespace, c.ID); opened != nil {
			opened.name = got.Session.Name
		}
	case *engine.Poll:
		if r := m.byID(head.Namespace, c.Ticket); r != nil && got.Outcome == engine.Queued {
			m.attach(r, head, c.Attach)
		}
	}
	if c, ok := cmd.(*engine.Resume); ok {
		if r := m.byID(head.Namespace, c.Lease); r != nil && r.phase == parked {
			m.awaits(c, r, got)
		} else if r != nil && r.phase == waiting && got.Outcome == engine.Queued {
			m.attach(r, head, c.Attach)
		}
	}
	m.heardWork(cmd, got)
	id, attach := idOf(cmd)
	if r := m.byID(head.Namespace, got.Ticket.ID); r != nil && r.ask.ID != id && id != [16]byte{} {
		m.attach(r, head, attach) // it follows one that waited already
	}
	if r := m.byID(head.Namespace, id); r != nil && !attach {
		r.attached = nil
	}
	return nil
}

// report takes in the progress of all that a session works at.
func (m *model) report(s *session, text string) {
	if text == s.said {
		return
	}
	for _, r := range m.inPhase(offered, held) {
		if r.session == s {
			r.report(m.now, text)
		}
	}
	if text != "" {
		s.said = text
	}
}

// report takes in a progress text: what was said before is no progress.
func (r *request) report(now engine.Time, text string) {
	if text != "" && text != r.said {
		r.said, r.progress = text, at(now)
	}
}

// compareKnown applies a report of known leases: whether the client must send a list, and which leases its list leaves
// out for the first time.
func (m *model) compareKnown(s *session, known *interlock.KnownLeases) (wants bool, left []*request) {
	if known == nil {
		return false, nil
	}
	named := map[[16]byte]bool{}
	for _, r := range m.inPhase(held) {
		if r.session != s || r.member != nil {
			continue
		}
		switch listed := slices.Contains(known.Leases, interlock.LeaseID(r.ask.ID)); {
		case !known.Listed && !r.unknown:
			named[r.ask.ID] = true
		case known.Listed && listed:
			r.unknown = false
		case known.Listed && !r.unknown:
			r.beat, r.unknown = r.lastBeat(), true
			left = append(left, r)
		}
	}
	for _, id := range known.Leases {
		if r := m.byID(s.ns, id); known.Listed && r != nil && r.base == nil && (r.phase == inGrace || r.phase == over) {
			left = append(left, r)
		}
	}
	return !known.Listed && *digestOf(named) != [16]byte(known.Digest) || !known.Listed && len(named) != known.Count, left
}

// digestOf returns the exclusive or of ids.
func digestOf(ids map[[16]byte]bool) (sum *[16]byte) {
	sum = new([16]byte)
	for id := range ids {
		for i := range id {
			sum[i] ^= id[i]
		}
	}
	return sum
}

// checkLosses: a heartbeat tells of every lease that was lost since the last one, and of those that its list left out.
func (m *model) checkLosses(s *session, left []*request, losses []engine.Loss) error {
	for _, r := range append(s.losses, left...) {
		told := func(l engine.Loss) bool {
			return l.Lease.ID == interlock.LeaseID(r.ask.ID) && l.Lease.Fence == r.fence
		}
		if !slices.ContainsFunc(losses, told) {
			return fmt.Errorf("the heartbeat does not tell of the loss of %v", r)
		}
	}
	for _, l := range losses {
		if r := m.byID(s.ns, l.Lease.ID); r == nil || r.session != s {
			return fmt.Errorf("the heartbeat tells of a loss of somebody else: %+v", l)
		}
	}
	s.losses = nil
	return nil
}

func (m *model) attach(r *request, head *engine.Head, on bool) {
	r.lapse = at(m.now.Add(interlock.BareTicketTTL))
	switch {
	case on:
		r.attached, r.link = head.From, head.Link
	case r.link == head.Link: // a look from elsewhere takes the answer away from no other listener
		r.attached = nil
	}
}

// forget records the end of listening.
func (m *model) forget(cmd engine.Command) {
	switch c := cmd.(type) {
	case *engine.Detach:
		m.leaveWork(c)
		for _, r := range m.requests {
			meant := r.session != nil && r.session.id == c.Session
			if !c.Ticket.IsZero() {
				meant = interlock.TicketID(r.ask.ID) == c.Ticket
			}
			if r.ns == c.Namespace && meant && r.phase == parked && !c.Ticket.IsZero() {
				r.unhear(c.Link)
			}
			if r.ns == c.Namespace && meant && r.attached != nil && r.link == c.Link {
				r.attached, r.lapse = nil, at(m.now.Add(interlock.BareTicketTTL))
			}
		}
		if s := m.sessionByID(c.Namespace, c.Session); s != nil && c.Ticket.IsZero() && s.link == c.Link {
			s.receiver = nil
		}
	case *engine.Recover:
		for _, s := range m.sessions {
			s.receiver, s.losses, s.beat = nil, nil, m.anew(s.ttl).add(-s.ttl)
			s.said = ""
		}
		for _, r := range m.requests {
			r.attached = nil
			switch r.phase {
			case waiting:
				r.lapse = m.anew(interlock.BareTicketTTL)
			case offered:
				wait := interlock.OfferTTL
				if r.session == nil {
					wait = interlock.BareOfferTTL
				}
				r.lapse = span{min(r.lapse.lo, m.now.Add(wait)), m.anew(wait).hi}
			case held:
				r.beat, r.unknown = m.anew(r.ttl()).add(-r.ttl()), false
				r.said, r.progress = "", m.anew(r.ask.Stall).add(-r.ask.Stall)
			case inGrace:
				r.graceTo = span{r.graceTo.lo, max(r.graceTo.hi, r.graceUpTo(m.anew(r.ask.Grace), r.why).hi)}
			case closed:
				r.opening = span{r.opening.lo, max(r.opening.hi, m.anew(r.ask.LockDelay).hi)}
			}
		}
	}
}

// anew is a deadline that a restart gave: d from now, and up to a quarter of it
// later.
func (m *model) anew(d time.Duration) span { return span{m.now.Add(d), m.now.Add(d + d/4)} }
