package shard

import (
	"runtime"
	"sync"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
)

// Group commit. There are two groups. The owner fills one with the steps of commands; the
// other one is being committed, or is spare. While an append takes long, the owner's group
// grows, so the next append takes more commands: there is no other batching.
//
//	owner       fills A ──── hand ──► fills B ─────────────────── hand ──► fills A
//	                          │ A                    A is spare │   │ B
//	committer                 └► write ─► deliver ──────────────┘   └► write ─► ...
//
// This file is the life of a group, from top to bottom:
//
//  1. The owner steps commands into its group (turn.go, group.go) until the group is full,
//     until it is worth a turn, or until nothing more waits.
//  2. It hands the group over when the other one is spare, and continues with that: hand,
//     offer.
//  3. The committer takes the group: committer.take. Or a goroutine that finds the shard
//     standing still takes the owner's and the committer's work for its own command: drive.go.
//  4. It writes entries, one append after the other, and delivers the answers of the steps
//     that have become durable after each: committer.commit.
//  5. If an append fails, it refuses the commands of the group that were not answered, and those
//     of all later groups of this engine. The owner finishes the shard, or makes the engine anew.
//  6. The group is spare again: otherGroup.put.

// link passes groups from the owner to the committer.
type link interface {
	// hand hands a group over as soon as the other one is spare, and returns that one.
	hand(*group) *group
	// offer does so if the other group is spare now; else it returns nil.
	offer(*group) *group
	// quiesce returns when everything that was handed over is committed.
	quiesce()
}

// otherGroup is the group that the owner does not fill, where owner and committer are
// goroutines. It is a link.
//
//	          take, by the owner           put, by its committer
//	spare ──────────────────────► in use ─────────────────────────────► spare
//
// While one is in use, no other goroutine commits: the committer's goroutine or a driver does.
type otherGroup struct {
	work chan *group // to the committer's goroutine; has room for the one group
	// back has a value when the group has become spare and the owner has not seen it yet. Only
	// the goroutine that has Shard.seat receives from it. It is a wake-up and no state: the
	// receiver checks the state again.
	back chan struct{}

	mu    sync.Mutex // protects spare and the contents of back; never held while anything waits
	spare *group     // nil while the group is in use
}

// newOtherGroup returns one without a group yet: put brings it.
func newOtherGroup() *otherGroup {
	return &otherGroup{work: make(chan *group, 1), back: make(chan struct{}, 1)}
}

// isSpare reports whether nothing is being committed.
func (x *otherGroup) isSpare() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.spare != nil
}

// take returns the spare group, which is in use from now on.
func (x *otherGroup) take() *group {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.spare
	if g == nil {
		panic("shard: invariant broken: both groups are in use")
	}
	x.spare = nil
	select {
	case <-x.back:
	default:
	}
	return g
}

// put makes g, which has been committed, the spare group.
func (x *otherGroup) put(g *group) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.spare = g
	select {
	case x.back <- struct{}{}:
	default:
	}
}

func (x *otherGroup) hand(g *group) *group {
	x.quiesce()
	spare := x.take()
	x.work <- g
	return spare
}

func (x *otherGroup) offer(g *group) *group {
	if !x.isSpare() {
		return nil
	}
	return x.hand(g)
}

func (x *otherGroup) quiesce() {
	for !x.isSpare() {
		<-x.back
	}
}

// hand hands the owner's group over as soon as the other one is spare, and continues with that.
func (o *owner) hand() { o.change(o.s.link.hand(o.cur)) }

// offer hands the owner's group over if there is something in it and the other one is spare
// now.
func (o *owner) offer() {
	if o.cur.empty() {
		return
	}
	if g := o.s.link.offer(o.cur); g != nil {
		o.change(g)
	}
}

// quiesce returns when everything that was stepped is committed, and nothing is being
// committed.
func (o *owner) quiesce() {
	if !o.cur.empty() {
		o.hand()
	}
	o.s.link.quiesce()
}

// change makes g the group that is filled. The one before has been handed over.
func (o *owner) change(g *group) {
	next := o.cur.next()
	o.sinceSnapshot += int64(len(o.cur.out.Entry))
	o.cur = g
	o.cur.begin(o.generation, next)
	if o.wantsSnapshot() {
		o.cur.snapshot = o.snapshot()
	}
}

// committer makes groups durable, one after the other, and delivers their answers. Nothing else
// delivers any. One goroutine at a time uses it: its own, or a driver while that one waits.
type committer struct {
	s *Shard

	// doomed is the newest generation with a failed append, and the error. All its later groups
	// rest on decisions that were never written.
	doomed int
	why    *interlock.Error
}

// run commits the groups of the owner, for as long as the shard lives.
func (c *committer) run() {
	defer close(c.s.stopped)
	for g := range c.s.other.work {
		c.serve(g)
		// Goroutines that were answered run first: the next append keeps the processor that
		// they are to run on until the disk has written.
		runtime.Gosched()
		c.s.other.put(g)
	}
}

// serve takes a group and commits it.
func (c *committer) serve(g *group) {
	if c.take(g) {
		if work := c.s.beginSnapshot(g); work != nil {
			c.s.background.Go(work)
		}
		if err := c.commit(g); err != nil {
			c.s.broken <- err
		}
	}
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

// write makes as much of the group durable as one append takes. If it fails, all unanswered
// callers are refused.
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

// deliver sends the answers of the steps that have become durable, in their order. The hash
// chain follows behind them, so that no caller waits for it.
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
			v.finish(at, v.refusal(at))
		}
	}
	c.s.extend(g)
}

// refuse answers every caller with an unanswered command in the group, and no other: a waiter
// that one of its steps would have granted hears nothing of it.
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
			eff := engine.Effect{To: to, Outcome: engine.Refused, Code: why.Code, Message: message.Plain(why.Message)}
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

// appendAll makes a group without callers durable. After ErrNoSpace it may be called again, and
// continues where it stopped.
func (s *Shard) appendAll(g *group) error {
	for g.written < len(g.ends) {
		if err := s.append(g); err != nil {
			return err
		}
		s.extend(g)
	}
	return nil
}
