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
			late := c.postpone(s, k, r, at)
			if !late {
				s.window.remove(r.Seq)
			}
			if full && len(c.queue)+len(c.front) > 0 {
				n.ring()
			}
			if !late {
				c.answered(s, k, r, at)
			}
		} else if k := s.waits[r.Seq]; k != nil {
			delete(s.waits, r.Seq)
			c.ends(s, k, r, at)
		}
	}
}

// answered takes the first answer to a call.
func (c *Client) answered(s *session, k *call, r *proto.Reply, at interlock.At) {
	if k.stands() || k.op.Kind == proto.OpPoll {
		c.ends(s, k, r, at)
		return
	}
	if k.follows() && c.follow(s, k, r) {
		return
	}
	switch k.op.Kind {
	case proto.OpHeartbeat:
		c.beat(s, k, r, at)
		return
	case proto.OpAckTask, proto.OpNackTask, proto.OpAskHuman:
		if g := s.leases[k.op.ID]; g != nil && r.Outcome == proto.Done {
			s.settled(g)
		}
	case proto.OpRelease:
		delete(s.leaving, k.op.ID)
	case proto.OpPark:
		if g := s.leases[k.op.ID]; g != nil && r.Outcome == proto.Done {
			s.lost(g, parkedHere(g), true)
		}
	case proto.OpLeave:
		delete(s.leaving, k.op.ID)
		if k.lease != nil {
			c.refresh(k.lease)
		}
		if pull := k.target; pull != nil {
			s.withdrew(pull)
		}
	case proto.OpRenew, proto.OpGetLease:
		if g := s.leases[k.op.ID]; g != nil && r.Outcome == proto.Granted {
			g.update(&r.Lease, r.Packet, at)
			g.bring(r, at)
			s.review(c, g)
		}
	}
	if k.finds() || k.op.Kind == proto.OpAckTask && r.Packet != nil {
		k.found = &found{Reply: *r, at: at} // the frame is used again
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

// ends takes an answer to an operation that may stand in line, or to a poll for one.
func (c *Client) ends(s *session, k *call, r *proto.Reply, at interlock.At) {
	if poll := k; poll.op.Kind == proto.OpPoll {
		if k = poll.target; k != nil {
			k.poll = nil
		}
		c.free(poll)
		if k == nil {
			return // the wait ended, or was given up, in the meantime
		}
		if k.op.Kind == proto.OpStartRun && r.Outcome == proto.Refused && c.startAgain(s, k) {
			return
		}
	}
	if k.follows() {
		c.followed(s, k, r, at)
		return
	}
	k.untie()
	if r.Outcome == proto.Queued && r.Ticket != nil {
		if k.forgotten {
			delete(s.tickets, r.Ticket.ID)
			k.ticket = *r.Ticket
			c.leave(k)
			c.free(k)
			return
		}
		k.phase, k.ticket, k.holders = standing, *r.Ticket, nil
		k.warnings = append(k.warnings, r.Warnings...)
		if r.Conflict != nil {
			k.holders = r.Conflict.Holders
		}
		k.second = r.Seq
		s.waits[k.second], s.tickets[k.ticket.ID] = k, k
		if k.withdrawn {
			c.leavePull(k)
		}
		k.tell()
		return
	}
	if k.phase == standing {
		delete(s.tickets, k.ticket.ID)
	}
	if k.op.Kind == proto.OpPullTasks && r.Outcome == proto.Granted {
		c.handedOut(s, k, r, at)
		return
	}
	g, err := c.outcome(s, k, r, at)
	if !k.forgotten {
		k.finish(g, err)
		return
	}
	if _, changes := k.ofLease(); g != nil && !changes {
		if g.refs--; g.refs == 0 {
			giveBack := proto.OpRelease
			if k.op.Kind == proto.OpResume {
				giveBack = proto.OpLeave // it is parked again
			}
			c.drop(s, g, giveBack)
		}
	}
	c.free(k)
}

// outcome turns the last answer to an operation that may stand in line into a lease
// or a refusal.
func (c *Client) outcome(s *session, k *call, r *proto.Reply, at interlock.At) (*grant, error) {
	switch r.Outcome {
	case proto.Granted:
		if l, o := &r.Lease, &k.op; r.AsAsked {
			l.Claims, l.Flow, l.Purpose, l.Agent, l.Session = o.Claims, o.Flow, o.Purpose, s.agent, s.name
		}
		g := s.leases[r.Lease.ID]
		_, leaving := s.leaving[r.Lease.ID]
		if _, changes := k.ofLease(); changes {
			if g == nil {
				return nil, goneHere(r, at)
			}
			g.update(&r.Lease, r.Packet, at)
			g.bring(r, at)
			return g, nil
		}
		switch {
		case g != nil:
			g.refs++
			g.bring(r, at)
		case leaving:
			return nil, errLeaving
		default:
			g = s.add(c, k, &r.Lease, r.Packet, at)
			g.bring(r, at)
			g.warnings, g.member = append(k.warnings, r.Warnings...), k.member
			s.review(c, g)
		}
		return g, nil
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
		if r.Code == interlock.CodeReleased && k.repeated && (k.op.Kind == proto.OpAcquire || k.op.Kind == proto.OpStartRun) {
			return nil, errLeaving // by us: it was granted while no caller here knew of it
		}
		return nil, r.Error(uint32(at.Shard), at.Epoch)
	}
	return nil, &interlock.Error{
		Code: interlock.CodeInternal, At: at,
		Message: fmt.Sprintf("the server answered operation %d with outcome %d", k.op.Kind, r.Outcome),
	}
}

// goneHere is for a lease that changed after this client had given it back, or
// had lost it.
func goneHere(r *proto.Reply, at interlock.At) *interlock.Error {
	key := keyOf(&r.Lease)
	return &interlock.Error{
		Code: interlock.CodeReleased, Key: key, At: at,
		Message: "the lease on " + string(key) + " is no longer held by this client",
	}
}

// drop releases a lease that no caller has.
func (c *Client) drop(s *session, g *grant, how proto.OpKind) {
	delete(s.leases, g.id)
	s.leaving[g.id] = struct{}{}
	k := c.newCall(how)
	k.op.ID, k.forgotten = g.id, true
	c.submit(k)
}

// leave leaves a place in line. It may have come to its end before that, which for a lease that
// was to be changed is found out afterwards.
func (c *Client) leave(standing *call) {
	if standing.op.Kind == proto.OpResume && standing.ticket.Position == 0 {
		return // it waits for an answer, and is in no line
	}
	k := c.newCall(proto.OpLeave)
	k.op.ID, k.forgotten = standing.ticket.ID, true
	if id, changes := standing.ofLease(); changes {
		k.lease = &id
	}
	c.submit(k)
}

// refresh asks how a lease stands.
func (c *Client) refresh(id *interlock.LeaseID) {
	k := c.newCall(proto.OpGetLease)
	k.op.ID, k.forgotten = *id, true
	c.submit(k)
}

// beat takes the answer to a heartbeat.
func (c *Client) beat(s *session, k *call, r *proto.Reply, at interlock.At) {
	since, number, progress := k.since, k.beat, k.op.Progress
	c.free(k)
	if r.Outcome != proto.Refused {
		s.answered(since)
		if r.WantsList { // nothing is known of a lease before the list
			c.submitFirst(c.newBeat(s, true))
		} else {
			s.renewed(number, since)
		}
		if progress != "" {
			for _, g := range s.leases {
				g.progressed(since)
			}
		}
		c.losses(s, r)
		return
	}
	if why := r.Error(uint32(at.Shard), at.Epoch); sessionGone(why) {
		c.sessionOver(s, why)
		c.conn.link.Close(nil) // a new link opens a new session
	}
}

// losses handles the losses that an attach or a heartbeat reports of the session's leases.
func (c *Client) losses(s *session, r *proto.Reply) {
	for i := range r.Losses {
		loss := &r.Losses[i]
		g := s.leases[loss.Lease.ID]
		if g == nil {
			continue
		}
		g.asked(loss.Lease.Yield)
		switch {
		case loss.Code != "" || loss.Lease.State == interlock.Grace || loss.Lease.State == interlock.Ended:
			s.lost(g, lossOf(g, loss), loss.Lease.State == interlock.Ended)
		case loss.Lease.State == interlock.Soft:
			g.warned(&loss.Lease)
		}
	}
}

func lossOf(g *grant, loss *proto.Loss) *interlock.Error {
	code, message := loss.Code, loss.Message
	if code == "" {
		code = interlock.CodeExpired
	}
	if message == "" {
		message = "the lease on " + string(g.key()) + " is lost (" + string(code) + "): write nothing more under it"
	}
	return &interlock.Error{
		Code: code, Message: message, Key: g.key(), EndedBy: loss.Lease.EndedBy, At: g.at,
		Advice: interlock.Advice{
			Action: interlock.ActReRead, Message: "write nothing more under the lease; acquire again and read again",
		},
	}
}

// pushed handles a push of the server.
func (c *Client) pushed(s *session, r *proto.Reply, at interlock.At) {
	if r.Outcome == proto.Granted {
		c.granted(s, r, at)
		return
	}
	g := s.leases[r.Lease.ID]
	if g == nil {
		return
	}
	g.asked(r.Lease.Yield)
	switch r.Outcome {
	case proto.Warned:
		g.warned(&r.Lease)
	case proto.Lost:
		why := r.Error(uint32(at.Shard), at.Epoch)
		why.Key, why.EndedBy = g.key(), r.Lease.EndedBy
		s.lost(g, why, r.Lease.State == interlock.Ended)
	}
}

// granted takes a lease that came unasked: a part of a shared-out key, or that of a wait that
// no caller was attached to at that moment.
func (c *Client) granted(s *session, r *proto.Reply, at interlock.At) {
	id := r.Lease.ID
	if k := s.tickets[interlock.TicketID(id)]; k != nil {
		c.ends(s, k, r, at)
		return
	}
	g := s.leases[id]
	if g == nil {
		switch of, joining := s.memberOf(&r.Lease); {
		case of != nil:
			s.adopt(c, of, r.Lease, at)
		case !joining:
			c.drop(s, s.add(c, &call{}, &r.Lease, r.Packet, at), proto.OpRelease)
		}
		return
	}
	for _, k := range s.tickets {
		if of, changes := k.ofLease(); changes && of == id {
			c.ends(s, k, r, at)
			return
		}
	}
	g.update(&r.Lease, r.Packet, at)
	g.bring(r, at)
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
		lost[g.flow] = true
		e := *why
		e.Key = g.key()
		s.lost(g, &e, true)
	}
	all := c.everything()
	slices.SortStableFunc(all, func(a, b *call) int { return cmp.Compare(a.op.Seq-1, b.op.Seq-1) }) // 0, not sent, is last
	c.sess, c.front, c.queue = nil, nil, nil
	for _, k := range all {
		c.dismiss(k)
		if k.follows() && k.phase == standing {
			k.followAgain()
		}
		again := k.outlives(lost) && (!k.forgotten || k.goesOn())
		switch {
		case again:
			k.begun = k.begun || k.phase == sent && k.changesMore()
			k.phase, k.op.Seq, k.repeated, k.warnings = ready, 0, false, nil
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
		case k.withdrawn:
			k.finish(nil, errWithdrawn)
		case k.phase == sent && k.changesMore():
			k.finish(nil, &interlock.Error{
				Code: interlock.CodeOutcomeUnknown, At: why.At,
				Message: "the session ended before the answer arrived: the outcome is unknown; check the state before you " +
					"try again",
			})
		default:
			k.finish(nil, why)
		}
	}
}

// unqueue takes a call that was not sent out of the queue.
func (c *Client) unqueue(k *call) {
	c.dismiss(k)
	same := func(other *call) bool { return other == k }
	c.front = slices.DeleteFunc(c.front, same)
	c.queue = slices.DeleteFunc(c.queue, same)
}

// replace puts another call in the place of one that is under way.
func (c *Client) replace(k, by *call) {
	c.dismiss(k)
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
	if _, follows := s.followers[k]; follows {
		delete(s.followers, k)
		s.followers[by] = struct{}{}
	}
	if i := slices.Index(c.front, k); i >= 0 {
		c.front[i] = by
	}
}
