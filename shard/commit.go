package shard

import (
	"errors"
	"runtime"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
)

// committer makes groups durable, one after the other, and lets their answers
// go. Nobody else delivers anything, and it is one goroutine at a time: see link.
type committer struct {
	s *Shard

	// doomed is the newest generation of which an append failed, and why. All its
	// later groups rest on decisions that were never written.
	doomed int
	why    *interlock.Error
}

// run takes what the owner hands over, for as long as the shard lives.
func (c *committer) run() {
	defer close(c.s.stopped)
	for g := range c.s.work {
		c.serve(g)
		// Those who were answered go first: the next append keeps the processor that they
		// are to run on until the disk has written.
		runtime.Gosched()
	}
}

// serve commits a group, and makes it the free one.
func (c *committer) serve(g *group) {
	if c.take(g) {
		if work := c.s.beginSnapshot(g); work != nil {
			c.s.background.Go(work)
		}
		if err := c.commit(g); err != nil {
			c.s.broken <- err
		}
	}
	c.s.free <- g
}

// take looks at a group before anything of it is written. It reports whether it is to
// be written: if not, all its commands were refused. If so, all before it is durable,
// because groups come in order.
func (c *committer) take(g *group) bool {
	switch {
	case g.refusal != nil:
		c.refuse(g, g.refusal)
		return false
	case g.generation <= c.doomed:
		c.refuse(g, c.why)
		return false
	}
	if c.s.observer != nil && len(g.cmds) > 0 {
		c.s.observer.Lag(g.lag)
	}
	return true
}

// commit makes what is left of a group durable and lets its answers go: of each append
// at once, because what has been written has happened, whatever becomes of the next one.
func (c *committer) commit(g *group) error {
	for c.deliver(g); !g.durable(); c.deliver(g) {
		if err := c.write(g); err != nil {
			return err
		}
	}
	return nil
}

// write makes as much of the group durable as one append takes. If it fails, whoever
// was not answered is refused.
func (c *committer) write(g *group) (err error) {
	if len(g.ends) > 0 {
		err = c.s.append(g)
	} else if err = c.s.journal.Barrier(c.s.ctx); err == nil {
		// Nothing was decided, but an answer may leave only if this epoch was still
		// the newest after the command arrived.
		g.wrote(0)
	}
	if err != nil {
		c.doomed, c.why = g.generation, refusalFor(err)
		c.refuse(g, c.why)
		c.s.extend(g)
	}
	return err
}

// deliver lets the answers of the steps go that have become durable, in their
// order. The hash chain follows behind them, so that nobody waits for it.
func (c *committer) deliver(g *group) {
	at := interlock.At{Shard: c.s.number, Epoch: c.s.epoch}
	next := g.through(g.told).effects
	for ; g.told < g.whole; g.told++ {
		at.Index = g.index(g.told)
		for ; next < g.marks[g.told].effects; next++ {
			eff := &g.out.Effects[next]
			if eff.To != nil {
				eff.To.(Receiver).Deliver(eff, at)
			}
		}
		if v, ok := g.cmds[g.told].(*visit); ok {
			v.finish(at, nil)
		}
	}
	c.s.extend(g)
}

// refuse answers everybody whose command is in the group and was not told yet, and
// nobody else: a waiter that one of its steps would have granted hears nothing of
// it.
func (c *committer) refuse(g *group, why *interlock.Error) {
	at := c.s.At()
	for _, cmd := range g.cmds[g.told:] {
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

// append makes the group's next entries durable, as many as one append takes, and
// counts them. The committer calls it, and the owner while no group is with the
// committer. After ErrNoSpace it may be called again.
func (s *Shard) append(g *group) error {
	began := s.watch()
	entries, from := g.cut(), g.written
	if err := s.journal.Append(s.ctx, g.first+interlock.Index(from), entries); err != nil {
		return err
	}
	whole := g.whole
	before := g.wrote(len(entries))
	size := g.at(g.written) - g.at(from)
	if s.observer != nil {
		s.observer.Appended(s.watch().Sub(began), len(entries), size)
		s.observer.Committed(g.out.Events[before.events:g.through(g.whole).events])
	}
	s.size.add(len(entries), int64(size))
	s.grow(g, whole)
	return nil
}

// appendAll makes a group durable that nobody waits for. After ErrNoSpace it may be
// called again, and goes on where it stopped.
func (s *Shard) appendAll(g *group) error {
	for g.written < len(g.ends) {
		if err := s.append(g); err != nil {
			return err
		}
		s.extend(g)
	}
	return nil
}

// Refusal returns what an error of a journal means for a caller whose request met it, or
// nil for any other error.
func Refusal(err error) *interlock.Error {
	for _, known := range []error{journal.ErrFenced, journal.ErrNoSpace, journal.ErrFailed} {
		if errors.Is(err, known) {
			return refusalFor(err)
		}
	}
	return nil
}

// What a failed append means for those whose commands were in it.
func refusalFor(err error) *interlock.Error {
	switch {
	case errors.Is(err, journal.ErrNoFiles):
		return &interlock.Error{
			Code:    interlock.CodeOverloaded,
			Message: "the server has no file descriptor left for its journal, and nothing was recorded; holders keep what they have; repeat the request in a moment",
		}
	case errors.Is(err, journal.ErrNoSpace):
		return &interlock.Error{
			Code:    interlock.CodeNoSpace,
			Message: "the server's disk, or etcd's quota, is full, and nothing was recorded; holders keep what they have; repeat the request when an operator has made room",
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
