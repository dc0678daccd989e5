package shard

import (
	"errors"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
)

// committer makes groups durable, one after the other, and lets their answers
// go. It is the only one that delivers anything.
type committer struct {
	s *Shard

	// doomed is the newest generation of which an append failed, and why. All its
	// later groups rest on decisions that were never written.
	doomed int
	why    *interlock.Error
}

func (c *committer) run() {
	defer close(c.s.stopped)
	for g := range c.s.work {
		c.commit(g)
		c.s.free <- g
	}
}

func (c *committer) commit(g *group) {
	s := c.s
	if g.refusal != nil {
		c.refuse(g, g.refusal)
		return
	}
	if g.generation <= c.doomed {
		c.refuse(g, c.why)
		return
	}
	var err error
	if len(g.ends) > 0 {
		err = s.append(g)
	} else {
		// Nothing was decided, but an answer may leave only if this epoch was still
		// the newest after the command arrived.
		err = s.journal.Barrier(s.ctx)
	}
	if err != nil {
		c.doomed, c.why = g.generation, refusalFor(err)
		c.refuse(g, c.why)
		s.broken <- err
		return
	}
	if s.observer != nil {
		s.observer.Lag(g.lag)
	}
	c.deliver(g)
	s.maybeSnapshot()
}

// deliver lets the answers of a durable group go, in the order of its steps.
func (c *committer) deliver(g *group) {
	at := interlock.At{Shard: c.s.number, Epoch: c.s.epoch}
	next := 0
	for i, m := range g.marks {
		at.Index = g.first + interlock.Index(m.entries) - 1
		for ; next < m.effects; next++ {
			eff := &g.out.Effects[next]
			if eff.To != nil {
				eff.To.(Receiver).Deliver(eff, at)
			}
		}
		if v, ok := g.cmds[i].(*visit); ok {
			v.finish(at, nil)
		}
	}
}

// refuse answers everybody whose command is in the group, and nobody else: a
// waiter that one of its steps would have granted hears nothing of it.
func (c *committer) refuse(g *group, why *interlock.Error) {
	at := c.s.At()
	for _, cmd := range g.cmds {
		if v, ok := cmd.(*visit); ok {
			err := *why
			err.At = at
			v.finish(at, &err)
			continue
		}
		if to := receiverOf(cmd); to != nil {
			eff := engine.Effect{To: to, Outcome: engine.Refused, Code: why.Code, Message: why.Message}
			to.Deliver(&eff, at)
		}
	}
}

// append makes the group's entries durable and counts them. The committer calls
// it, and the owner while no group is with the committer.
func (s *Shard) append(g *group) error {
	began := time.Now()
	if err := s.journal.Append(s.ctx, g.first, g.cut()); err != nil {
		return err
	}
	if s.observer != nil {
		s.observer.Appended(time.Since(began), len(g.ends), len(g.out.Entry))
		s.observer.Committed(g.out.Events)
	}
	s.size.add(len(g.ends), int64(len(g.out.Entry)))
	s.sinceSnapshot += int64(len(g.out.Entry))
	s.grow(g)
	return nil
}

// What a failed append means for those whose commands were in it.
func refusalFor(err error) *interlock.Error {
	switch {
	case errors.Is(err, journal.ErrNoSpace):
		return &interlock.Error{
			Code:    interlock.CodeNoSpace,
			Message: "the server's disk is full, and nothing was recorded; holders keep what they have; repeat the request when an operator has made room",
		}
	case errors.Is(err, journal.ErrFenced):
		return &interlock.Error{
			Code:    interlock.CodeNotOwner,
			Message: "another server has taken over; repeat the request with the same id there",
		}
	}
	return &interlock.Error{
		Code:    interlock.CodeOutcomeUnknown,
		Message: "the server's storage failed before the outcome was certain; repeat the request with the same id",
	}
}

// closedFor is what those are told whose command was never stepped.
func closedFor(err error) *interlock.Error {
	if errors.Is(err, journal.ErrFenced) {
		return refusalFor(err)
	}
	return &interlock.Error{
		Code:    interlock.CodeShuttingDown,
		Message: "the server is going down, and nothing was carried out; repeat the request in a moment",
	}
}
