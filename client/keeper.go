package client

import (
	"math/rand/v2"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/endpoint"
	"github.com/interlockdev/interlock/proto"
)

// beatAfter is when the next heartbeat is due for a ttl: after a third of it or
// somewhat less, so that many clients do not fall into step.
func beatAfter(ttl time.Duration) time.Duration {
	third := ttl / 3
	return third - rand.N(third/5+1)
}

// beatAfter is when the next heartbeat of the client is due.
func (c *Client) beatAfter(ttl time.Duration) time.Duration { return beatAfter(c.timed(ttl)) }

// timed returns the ttl that heartbeats are timed by.
func (c *Client) timed(ttl time.Duration) time.Duration {
	if c.several() {
		return min(ttl, endpoint.Attentive)
	}
	return ttl
}

// now is a monotonic clock that also advances while the machine sleeps: Go's own stands still
// then, and a lease would seem alive after a night in a closed laptop.
func (c *Client) now() time.Time { return time.Now().Add(slept()) }

// look wakes keep to check its deadlines.
func (c *Client) look() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// keep sends heartbeats and drops leases that are over by this machine's clock, until the
// client is closed.
func (c *Client) keep() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.kick:
		case <-timer.C:
		}
		timer.Reset(c.due())
	}
}

// due carries out the due work and returns when to look again: at least once a second while
// there is something to lose, because a timer stands still while the machine sleeps.
func (c *Client) due() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sess
	if s == nil {
		return time.Minute // a new session looks again
	}
	now := c.now()
	if !now.Before(s.check) {
		c.giveUp(s, now)
	}
	if !now.Before(s.nextBeat) && c.conn != nil {
		silent := s.beatSent.Sub(s.beatAt)
		if silent > c.timed(s.shortest)/2 {
			// Two heartbeats without an answer: the link is dead, whatever it reports.
			c.conn.link.Close(&interlock.Error{
				Code: interlock.CodeUnreachable, Message: "the server does not respond: trying the next one",
			})
			s.nextBeat = now.Add(c.beatAfter(s.shortest))
		} else {
			c.sendBeat(s)
		}
	}
	next := s.check.Sub(now)
	if c.conn != nil {
		next = min(next, s.nextBeat.Sub(now))
	}
	if len(s.leases) > 0 {
		next = min(next, time.Second)
	}
	return max(next, time.Millisecond)
}

// giveUp drops the leases of a session that are over by this machine's clock. mu is held.
func (c *Client) giveUp(s *session, now time.Time) {
	for _, g := range s.overdue(now) {
		s.gaveUp[g.flow] = true
		why := endedHere(g, now)
		over := why.Code != interlock.CodeInGrace
		s.lost(g, why, over)
		if over && g.of == nil { // a part goes with its membership
			c.drop(s, g, proto.OpRelease) // the server may still think that it is held
		}
	}
}

// sendBeat makes a heartbeat ready. mu is held.
func (c *Client) sendBeat(s *session) { c.submitFirst(c.newBeat(s, false)) }

// newBeat makes a heartbeat. With listed it lists the leases that the client knows. mu is held.
func (c *Client) newBeat(s *session, listed bool) *call {
	now := c.now()
	s.beats++
	s.beatSent, s.nextBeat = now, now.Add(c.beatAfter(s.shortest))
	k := c.newCall(proto.OpHeartbeat)
	k.since, k.beat, k.op.Known = now, s.beats, s.known(listed)
	if c.progress != s.told {
		k.op.Progress, s.told = c.progress, c.progress
	}
	return k
}
