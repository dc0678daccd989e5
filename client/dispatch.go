package client

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// All functions of this file are called with Client.mu held.

// dispatch takes the answers and pushes of one frame.
func (c *Client) dispatch(n *conn, frame *proto.ServerFrame) {
	if frame.GoAway != nil {
		c.goAway = max(frame.GoAway.RetryAfter, 1)
	}
	if n != c.conn {
		return
	}
	for i := range frame.Replies {
		r := &frame.Replies[i]
		s := c.sess
		if s == nil || r.Slot != s.slot {
			continue
		}
		at := interlock.At{Shard: int(frame.Shard), Epoch: frame.Epoch, Index: r.Index}
		if r.Seq == 0 {
			c.pushed(s, r, at)
			continue
		}
		if k := s.window.get(r.Seq); k != nil {
			full := s.window.open() >= windowLimit
			s.window.remove(r.Seq)
			if full && len(c.queue)+len(c.front) > 0 {
				n.ring()
			}
			c.answered(s, k, r, at)
		} else if k := s.waits[r.Seq]; k != nil {
			delete(s.waits, r.Seq)
			c.ends(s, k, r, at)
		}
	}
}

// answered takes the first answer to a call.
func (c *Client) answered(s *session, k *call, r *proto.Reply, at interlock.At) {
	switch k.op.Kind {
	case proto.OpAcquire, proto.OpPoll:
		c.ends(s, k, r, at)
		return
	case proto.OpHeartbeat:
		c.beat(s, k, r, at)
		return
	case proto.OpRelease:
		delete(s.leaving, k.op.ID)
	}
	var err error
	if r.Outcome == proto.Refused {
		err = r.Error(uint32(at.Shard), at.Epoch)
	}
	if k.forgotten {
		c.free(k)
		return
	}
	k.finish(nil, err)
}

// ends takes an answer to an acquire, or to a poll for one.
func (c *Client) ends(s *session, k *call, r *proto.Reply, at interlock.At) {
	if poll := k; poll.op.Kind == proto.OpPoll {
		if k = poll.target; k != nil {
			k.poll = nil
		}
		c.free(poll)
		if k == nil {
			return // the wait ended, or was given up, in the meantime
		}
	}
	k.untie()
	if r.Outcome == proto.Queued && r.Ticket != nil {
		if k.forgotten {
			delete(s.tickets, r.Ticket.ID)
			c.leave(r.Ticket.ID)
			c.free(k)
			return
		}
		k.phase, k.ticket, k.holders = standing, *r.Ticket, nil
		if r.Conflict != nil {
			k.holders = r.Conflict.Holders
		}
		k.second = r.Seq
		s.waits[k.second], s.tickets[k.ticket.ID] = k, k
		k.tell()
		return
	}
	if k.phase == standing {
		delete(s.tickets, k.ticket.ID)
	}
	g, err := c.outcome(s, k, r, at)
	if !k.forgotten {
		k.finish(g, err)
		return
	}
	if g != nil {
		if g.refs--; g.refs == 0 {
			c.drop(s, g)
		}
	}
	c.free(k)
}

// outcome turns the last answer to an acquire into a lease or a refusal.
func (c *Client) outcome(s *session, k *call, r *proto.Reply, at interlock.At) (*grant, error) {
	switch r.Outcome {
	case proto.Granted:
		if g := s.leases[r.Lease.ID]; g != nil {
			g.refs++
			return g, nil
		}
		if _, leaving := s.leaving[r.Lease.ID]; leaving {
			return nil, errLeaving
		}
		return s.add(c, r, at), nil
	case proto.Skipped:
		skipped := &SkippedError{}
		if r.Conflict != nil {
			skipped.Key, skipped.Holders = r.Conflict.Key, r.Conflict.Holders
		}
		if r.Advice != nil {
			skipped.Advice = *r.Advice
		}
		return nil, skipped
	case proto.Refused:
		return nil, r.Error(uint32(at.Shard), at.Epoch)
	}
	return nil, &interlock.Error{Code: interlock.CodeInternal, Message: fmt.Sprintf("the server answered an acquire with outcome %d", r.Outcome), At: at}
}

// drop gives a lease back that nobody has.
func (c *Client) drop(s *session, g *grant) {
	delete(s.leases, g.info.ID)
	s.leaving[g.info.ID] = struct{}{}
	k := c.newCall(proto.OpRelease)
	k.op.ID, k.forgotten = g.info.ID, true
	c.submit(k)
}

// leave gives up a place in line.
func (c *Client) leave(id interlock.TicketID) {
	k := c.newCall(proto.OpLeave)
	k.op.ID, k.forgotten = id, true
	c.submit(k)
}

// beat takes the answer to a heartbeat.
func (c *Client) beat(s *session, k *call, r *proto.Reply, at interlock.At) {
	since := k.since
	c.free(k)
	if r.Outcome != proto.Refused {
		s.confirmed(since)
		c.losses(s, r)
		return
	}
	if why := r.Error(uint32(at.Shard), at.Epoch); sessionGone(why) {
		c.sessionOver(s, why)
		c.conn.link.Close(nil) // a new link opens a new session
	}
}

// losses takes what an attach or a heartbeat says of the session's leases.
func (c *Client) losses(s *session, r *proto.Reply) {
	for i := range r.Losses {
		loss := &r.Losses[i]
		g := s.leases[loss.Lease.ID]
		if g == nil {
			continue
		}
		switch {
		case loss.Code != "" || loss.Lease.State == interlock.Grace || loss.Lease.State == interlock.Ended:
			code := loss.Code
			if code == "" {
				code = interlock.CodeExpired
			}
			s.lost(g, &interlock.Error{
				Code: code, Key: g.key(), At: g.at,
				Message: "the lease on " + string(g.key()) + " is lost (" + string(code) + "): write nothing more under it",
				Advice:  interlock.Advice{Action: interlock.ActReRead, Message: "write nothing more under the lease; acquire again and read again"},
			}, loss.Lease.State == interlock.Ended)
		case loss.Lease.State == interlock.Soft:
			g.warn()
		}
	}
}

// pushed takes what the server says unasked.
func (c *Client) pushed(s *session, r *proto.Reply, at interlock.At) {
	switch r.Outcome {
	case proto.Warned:
		if g := s.leases[r.Lease.ID]; g != nil {
			g.warn()
		}
	case proto.Lost:
		if g := s.leases[r.Lease.ID]; g != nil {
			why := r.Error(uint32(at.Shard), at.Epoch)
			why.Key = g.key()
			s.lost(g, why, r.Lease.State == interlock.Ended)
		}
	case proto.Granted:
		// A wait to which nobody was attached at that moment was granted.
		if k := s.tickets[interlock.TicketID(r.Lease.ID)]; k != nil {
			c.ends(s, k, r, at)
		} else if s.leases[r.Lease.ID] == nil {
			c.drop(s, s.add(c, r, at))
		}
	}
}

// sessionOver ends a session that the server has ended. Its leases are lost. A
// request that was under way is asked again in the next session, unless its flow
// has just lost a lease: what it was going to do next may rest on that.
func (c *Client) sessionOver(s *session, why *interlock.Error) {
	if c.sess != s {
		return
	}
	lost := s.gaveUp
	for _, g := range s.leases {
		lost[g.info.Flow] = true
		e := *why
		e.Key = g.key()
		s.lost(g, &e, true)
	}
	all := c.everything()
	slices.SortStableFunc(all, func(a, b *call) int { return cmp.Compare(a.op.Seq-1, b.op.Seq-1) }) // 0, not sent, is last
	c.sess, c.front, c.queue = nil, nil, nil
	for _, k := range all {
		again := false
		switch k.op.Kind {
		case proto.OpAcquire:
			again = !k.forgotten && !lost[k.op.Flow]
		case proto.OpCheckFence:
			again = true
		}
		switch {
		case again:
			k.phase, k.op.Seq = ready, 0
			k.op.Claims = slices.Clone(k.op.Claims)
			c.queue = append(c.queue, k)
		case k.op.Kind == proto.OpPoll:
			if k.target != nil {
				k.target.poll = nil
			}
			c.free(k)
		case k.forgotten || k.op.Kind == proto.OpHeartbeat:
			c.free(k)
		case k.op.Kind == proto.OpClose:
			k.finish(nil, nil)
		default:
			k.finish(nil, why)
		}
	}
}

// unqueue takes a call that was not sent out of the queue.
func (c *Client) unqueue(k *call) {
	same := func(other *call) bool { return other == k }
	c.front = slices.DeleteFunc(c.front, same)
	c.queue = slices.DeleteFunc(c.queue, same)
}

// replace puts another call in the place of one that is under way.
func (c *Client) replace(k, by *call) {
	if i := slices.Index(c.queue, k); i >= 0 {
		c.queue[i] = by
		return
	}
	s := c.sess
	if s == nil {
		return
	}
	if s.window.get(k.op.Seq) == k {
		s.window.ring[k.op.Seq%windowSize] = by
	}
	if s.waits[k.second] == k {
		s.waits[k.second] = by
	}
	if s.tickets[k.ticket.ID] == k {
		s.tickets[k.ticket.ID] = by
	}
	if i := slices.Index(c.front, k); i >= 0 {
		c.front[i] = by
	}
}
