package shard

import (
	"context"
	"errors"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// Manual is a shard without goroutines and without real time: its caller decides when the owner has
// a turn, when the committer writes, and when the answers leave. It is for simulations, which put a
// crash or a pause between any two of these. Between them the code is that of Shard.
//
//	Submit ─► Turn ─► Turn ─► Append ─► Answer ─► Append ─► Answer ...
//	                   └──► (while a group is being written, the next is filled)
//
// One goroutine uses it. A Manual is dropped without Close to have its process die.
type Manual struct {
	s *Shard

	with     *group // the group that the committer has, or nil
	spare    *group // the one that neither has, or nil
	failed   error  // of an append, not reported to the owner yet
	retry    time.Time
	finished bool
	work     func() // of a snapshot that is wanted, or nil
}

// OpenManual is Open. cfg.Clock must be set; its alarm is not used, since the caller of Turn knows
// the time. watch measures how long things take: the bounds of a namespace's turn are counted by
// it.
func OpenManual(ctx context.Context, cfg Config, watch func() time.Time) (*Manual, error) {
	if cfg.Clock == nil {
		return nil, errors.New("shard: Config.Clock is not set")
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	m := &Manual{s: newShard(cfg, watch), spare: new(group)}
	m.s.link = m
	if err := m.s.begin(ctx, cfg.FenceJump); err != nil {
		m.s.cancel()
		return nil, err
	}
	return m, nil
}

// Submit is Shard.Submit.
func (m *Manual) Submit(cmds ...engine.Command) error { return m.s.Submit(cmds...) }

// At is Shard.At.
func (m *Manual) At() interlock.At { return m.s.At() }

// Err returns why the shard is finished, or nil.
func (m *Manual) Err() error { return m.s.Err() }

// Engine is the live engine. Between Turns it may be read.
func (m *Manual) Engine() *engine.Engine { return m.s.owner.eng }

// Settled reports whether the engine's state is that of At: nothing is stepped that is
// not durable and answered.
func (m *Manual) Settled() bool { return m.with == nil && m.s.owner.cur.empty() && m.failed == nil }

// Turn makes the owner do what it would do without waiting: give one namespace its turn, hand a
// group over, or handle a failed append. It reports whether there is more to do for it now; if
// not, there is after a Submit, after Append and Answer, or when the clock reaches the last
// time passed to SetAlarm. For a parked shard it is called now and then.
func (m *Manual) Turn() (more bool) {
	o := m.s.owner
	switch {
	case m.finished:
		return false
	case m.failed != nil:
		err := m.failed
		m.failed = nil
		m.finished = !o.broken(err)
		m.retry = m.s.watch().Add(o.parked)
	case o.term != nil:
		closed := o.refuseWaiting(refusalFor(o.scarce))
		if now := m.s.watch(); closed || !now.Before(m.retry) {
			m.retry = now.Add(o.parked)
			m.finished = !o.unpark(closed)
		}
		return false
	case o.cur.full() && m.with != nil:
		return false // the committer has to catch up
	case o.cur.full():
		o.hand()
	case o.ring.n > 0:
		o.turn()
	case o.closed:
		o.quiesce()
		if m.failed != nil {
			m.s.fail(m.failed)
		}
		m.finished = true
	default:
		o.offer()
		o.armed = 0
		if o.gather(); o.ring.n == 0 {
			o.arm()
			return false
		}
	}
	return !m.finished
}

// Appending reports whether the committer has something to write, or to answer.
func (m *Manual) Appending() bool { return m.with != nil }

// Append makes the committer write once: one append, or a barrier if there is nothing to
// append. Its durable steps are not answered before Answer.
func (m *Manual) Append() {
	if m.with == nil || m.with.told < m.with.whole {
		return
	}
	if m.failed = m.s.committer.write(m.with); m.failed != nil {
		m.done()
	}
}

// Answer delivers the answers of the steps that Append has made durable.
func (m *Manual) Answer() {
	if m.with == nil {
		return
	}
	m.s.committer.deliver(m.with)
	if m.with.durable() {
		m.done()
	}
}

// done takes the group back from the committer.
func (m *Manual) done() {
	m.with, m.spare = nil, m.with
}

// Snapshotting reports whether a snapshot is wanted.
func (m *Manual) Snapshotting() bool { return m.work != nil }

// Snapshot makes the snapshot that is wanted. Others may append before it is called.
func (m *Manual) Snapshot() {
	work := m.work
	m.work = nil
	work()
}

// Close is Shard.Close, without another goroutine's help.
func (m *Manual) Close(ctx context.Context) error {
	m.s.mail.close(closedFor(nil))
	for !m.finished {
		if m.Turn(); m.with != nil {
			m.settle()
		}
	}
	m.s.cancel()
	if m.s.Err() == nil {
		m.s.lastSnapshot(ctx)
	}
	return errors.Join(m.s.Err(), m.s.journal.Close())
}

// Parked reports whether the shard refuses everything because its journal is full.
func (m *Manual) Parked() bool { return m.s.owner.term != nil }

// hand implements link.
func (m *Manual) hand(g *group) *group {
	m.settle()
	empty := m.spare
	m.spare = nil
	if m.s.committer.take(g) {
		m.with = g
		if work := m.s.beginSnapshot(g); work != nil {
			m.work = work
		}
	} else {
		m.spare = g
	}
	if empty == nil || empty == g {
		panic("shard: invariant broken: both groups are in use")
	}
	return empty
}

// offer implements link.
func (m *Manual) offer(g *group) *group {
	if m.with != nil {
		return nil
	}
	return m.hand(g)
}

// quiesce implements link.
func (m *Manual) quiesce() { m.settle() }

// settle makes the committer do all its pending work.
func (m *Manual) settle() {
	if m.with == nil {
		return
	}
	if err := m.s.committer.commit(m.with); err != nil {
		m.failed = err
	}
	m.done()
}
