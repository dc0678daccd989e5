package shard

import (
	"errors"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
)

// fullFor is how long the engine admits nothing new after the journal had no
// space, even if the journal says that there is room.
const fullFor = 5 * time.Second

// owner is the goroutine that owns the engine. Nobody else touches what is in
// here while it runs.
type owner struct {
	s   *Shard
	eng *engine.Engine

	generation int              // of the engine: how often it was rebuilt
	cur        *group           // what is being filled
	spare      []engine.Command // to swap with the mailbox's
	armed      engine.Time      // when the alarm is set for, in the clock's time; 0 when it is not
	tick       engine.Tick

	limit     *engine.Limit // what the engine was last told
	draining  bool
	fullUntil engine.Time
}

// run steps what waits until the mailbox is closed and empty, or the journal is
// not usable any more.
func (o *owner) run() {
	s := o.s
	defer close(s.work)
	for {
		// The committer can be slower than the commands come. While it is busy, the
		// group here grows: that is the whole of group commit.
		var send chan *group
		if !o.cur.empty() {
			send = s.work
		}
		wake, alarm := s.mail.wake, s.clock.Alarm()
		if o.cur.full() {
			wake, alarm = nil, nil
		}
		select {
		case err := <-s.broken:
			if !o.broken(err) {
				return
			}
		case send <- o.cur:
			o.turn()
		case <-wake:
			if o.rounds() {
				o.quiesce()
				select {
				case err := <-s.broken: // the last group failed
					s.fail(err)
				default:
				}
				return
			}
		case <-alarm:
			o.armed = 0
			o.rounds()
		}
	}
}

// turn takes the group that the committer is done with. It never waits: of the
// two groups one is with the committer at most.
func (o *owner) turn() {
	next := o.cur.next()
	o.cur = <-o.s.free
	o.cur.begin(o.generation, next)
}

// hand gives the group to the committer as soon as it is ready for it.
func (o *owner) hand() {
	o.s.work <- o.cur
	o.turn()
}

// offer gives the group to the committer if it is ready for it now.
func (o *owner) offer() {
	if o.cur.empty() {
		return
	}
	select {
	case o.s.work <- o.cur:
		o.turn()
	default:
	}
}

// quiesce returns when the committer has done with everything and stands still.
func (o *owner) quiesce() {
	if !o.cur.empty() {
		o.hand()
	}
	g := <-o.s.free
	o.s.free <- g
}

// rounds lets everything happen that waits or is due. It reports whether the
// mailbox was closed and is empty.
func (o *owner) rounds() (ended bool) {
	for {
		due, closed := o.round()
		if !due {
			o.arm()
			return closed
		}
		o.offer()
	}
}

// round steps what is in the mailbox and then, if something is due, lets time end
// a bounded number of things. The tick has the time at which the mailbox was
// emptied, so every heartbeat that came before has been stepped: also after a
// pause, when many wait and everything seems to be due.
func (o *owner) round() (due, closed bool) {
	b := o.s.mail.swap(o.spare[:0])
	lag := time.Since(b.since)
	if len(b.cmds) > 0 {
		h, _ := headOf(b.cmds[0])
		o.admit(h.At)
	}
	for _, cmd := range b.cmds {
		if o.cur.full() {
			o.hand()
			lag = time.Since(b.since)
		}
		o.cur.lag = max(o.cur.lag, lag)
		o.step(cmd)
	}
	clear(b.cmds)
	o.spare = b.cmds

	if at, ok := o.eng.NextTimer(); !ok || at > b.now {
		return false, b.closed
	}
	if o.cur.full() {
		o.hand()
	}
	o.tick = engine.Tick{Head: engine.Head{At: b.now}}
	o.cur.step(o.eng, &o.tick)
	at, ok := o.eng.NextTimer()
	return ok && at <= b.now, b.closed
}

// step carries one command out.
func (o *owner) step(cmd engine.Command) {
	v, ok := cmd.(*visit)
	if !ok {
		o.cur.step(o.eng, cmd)
		return
	}
	if o.eng.Now() < v.At {
		// A query sees the state as of its own time.
		v.tick.At = v.At
		o.cur.step(o.eng, &v.tick)
	}
	v.step(o)
	o.cur.mark(cmd, len(o.cur.out.Entry))
}

// arm sets the alarm for the next thing to end. An alarm that would ring too
// early is left alone: it costs less to be woken once for nothing than to move it
// with every heartbeat.
func (o *owner) arm() {
	at, ok := o.eng.NextTimer()
	if !ok {
		return
	}
	at = o.s.mail.clockTime(at)
	if o.armed == 0 || at < o.armed {
		o.armed = at
		o.s.clock.SetAlarm(at)
	}
}

// admit tells the engine what it may admit, when that has changed.
func (o *owner) admit(now engine.Time) {
	low := now < o.fullUntil || o.s.journal.Low()
	if low == o.limit.LowSpace && o.draining == o.limit.Draining {
		return
	}
	switch {
	case low && !o.limit.LowSpace:
		o.s.log.Warn("journal runs out of space: nothing new is admitted, releases still work")
	case !low && o.limit.LowSpace:
		o.s.log.Info("journal has space again")
	}
	o.setLimit(low, now)
}

// setLimit steps a Limit.
func (o *owner) setLimit(low bool, now engine.Time) {
	if o.cur.full() {
		o.hand()
	}
	o.limit = &engine.Limit{Head: engine.Head{At: now}, LowSpace: low, Draining: o.draining}
	o.cur.step(o.eng, o.limit)
}

// broken is called when a group could not be made durable. It reports whether the
// shard goes on.
func (o *owner) broken(err error) bool {
	if errors.Is(err, journal.ErrNoSpace) {
		err = o.rebuild()
		if err == nil {
			return true
		}
	}
	o.s.fail(err)
	o.refuseWaiting(closedFor(err))
	return false
}

// refuseWaiting answers all that is in the mailbox without stepping it, and
// returns when that is done. It reports whether nothing more can come.
func (o *owner) refuseWaiting(why *interlock.Error) (closed bool) {
	if !o.cur.empty() {
		o.hand()
	}
	b := o.s.mail.swap(o.spare[:0])
	for _, cmd := range b.cmds {
		if o.cur.full() {
			o.hand()
		}
		o.cur.refusal = why
		o.cur.mark(cmd, 0)
	}
	clear(b.cmds)
	o.spare = b.cmds
	o.quiesce()
	return b.closed
}
