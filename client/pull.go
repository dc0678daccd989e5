package client

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// A pull asks for tasks, and stands until there are some. It names its own ticket, and is sent
// under the same one until it is answered: tasks of a lost answer are handed out to it again.

// assignment is a task in our hands.
type assignment struct {
	task      interlock.Task
	grant     *grant
	documents []interlock.Document
	asOf      interlock.Version
}

// errWithdrawn reports that a pull was given up before it brought anything.
var errWithdrawn = errors.New("the pull was withdrawn")

// pull asks for tasks and waits until there are some, or until ctx ends. least is the
// shortest ttl that their leases are known to have; 0: the session's.
func (c *Client) pull(
	ctx, limit context.Context, queue string, most int, ttl, least time.Duration,
) ([]assignment, error) {
	k := c.newCall(proto.OpPullTasks)
	k.op.TTL, k.op.Task, k.least = ttl, &proto.TaskOp{Queue: queue, Limit: uint32(most)}, least
	_, _ = rand.Read(k.op.ID[:])
	if err := k.check(); err != nil {
		return nil, err
	}
	if err := c.begin(k); err != nil {
		return nil, err
	}
	end, never := ctx.Done(), limit.Done()
	for {
		select {
		case news := <-k.news:
			if news == done {
				list, err := k.handed, k.err
				c.free(k)
				return list, err
			}
		case <-end:
			// A task that was handed out meanwhile is not lost: it comes before the answer to
			// that.
			end = nil
			c.withdrawPull(k)
		case <-never:
			if was, _ := c.forget(k); was != done {
				return nil, context.Cause(limit)
			}
			never = nil
		}
	}
}

// withdrawPull ends a pull, with the received tasks or with errWithdrawn.
func (c *Client) withdrawPull(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.withdrawn = true
	switch k.phase {
	case ready:
		c.unqueue(k)
		k.finish(nil, errWithdrawn)
	case standing:
		c.leavePull(k)
	}
}

// The functions below are called with Client.mu held.

// leavePull reports to the server that no worker waits for a pull that stands.
func (c *Client) leavePull(k *call) {
	leave := c.newCall(proto.OpLeave)
	leave.op.ID, leave.forgotten = k.ticket.ID, true
	leave.target, k.poll = k, leave
	c.submit(leave)
}

// withdrew ends a pull that the server has forgotten.
func (s *session) withdrew(k *call) {
	delete(s.tickets, k.ticket.ID)
	delete(s.waits, k.second)
	k.finish(nil, errWithdrawn)
}

// pullAgain makes a pull that stood over a broken link one that is to be sent anew.
func (s *session) pullAgain(k *call) *call {
	k.untie()
	delete(s.tickets, k.ticket.ID)
	k.phase, k.op.Seq = ready, 0
	return k
}

// handedOut handles the answer of a pull.
func (c *Client) handedOut(s *session, k *call, r *proto.Reply, at interlock.At) {
	if !k.forgotten {
		k.handed = make([]assignment, 0, len(r.Handed))
	}
	for i := range r.Handed {
		h := &r.Handed[i]
		if k.forgotten {
			back := c.newCall(proto.OpNackTask)
			back.op.ID, back.forgotten = h.Lease.ID, true
			back.op.Task = &proto.TaskOp{Delay: -1, Reason: "its caller stopped waiting"}
			c.submit(back)
			continue
		}
		g := s.add(c, k, &h.Lease, nil, at)
		k.handed = append(k.handed, assignment{task: h.Task, grant: g, documents: h.Documents, asOf: h.AsOf})
	}
	if k.forgotten {
		c.free(k)
		return
	}
	k.finish(nil, nil)
}

// settled ends a lease after its holder has ended the attempt.
func (s *session) settled(g *grant) {
	delete(s.leases, g.id)
	g.lose(releasedHere(g))
	g.ended = true
}
