package shard

import (
	"errors"
	"runtime"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
)

// fullFor is how long the engine admits nothing new after the journal had no space, even if the
// journal reports that there is room.
const fullFor = 5 * time.Second

// owner owns the engine. Only the goroutine that has Shard.seat touches its fields.
type owner struct {
	s   *Shard
	eng *engine.Engine

	generation int         // of the engine: how often it was rebuilt
	cur        *group      // the group that is being filled
	armed      engine.Time // when the alarm is set for, in the clock's time; 0 when it is not
	tick       engine.Tick

	ring   ring        // the namespaces that wait for their turn
	found  []*backlog  // reused
	left   int         // turns until the ring has gone round
	now    engine.Time // when the ring was last added to
	closed bool        // nothing more can come

	limit     *engine.Limit // the last limit that the engine got
	draining  bool
	fullUntil engine.Time
	scarce    error         // why the engine had to be rebuilt, the last time
	unread    bool          // it is still to be made from the journal, which cannot be read for now
	parked    time.Duration // until the next try, while there is no room
	term      *group        // of Recover after a rebuild, while there is no room for it: see rebuild.go

	sinceSnapshot int64         // bytes of entries behind the last snapshot that was begun
	pressAt       engine.Time   // when the next snapshot for want of space is due
	pressPause    time.Duration // how long the last one was waited for
}

// run steps the waiting commands until the mailbox is closed and empty, or the journal is
// not usable any more.
//
// The committer can be slower than the commands come. While it is busy, the group
// here grows: that is the whole of group commit.
func (o *owner) run() {
	s := o.s
	defer close(s.other.work)
	s.seat.Lock() // for good: a finished shard is not driven
	for {
		switch {
		case o.term != nil:
			if closed := o.park(); !o.unpark(closed) {
				return
			}
		case o.cur.full() && s.other.isSpare():
			o.hand()
		case o.cur.full():
			select {
			case err := <-s.broken:
				if !o.broken(err) {
					return
				}
			case <-s.other.back:
			}
		case o.ring.n > 0:
			select {
			case err := <-s.broken:
				if !o.broken(err) {
					return
				}
			default:
				if o.turn() {
					o.pause()
				}
			}
		case o.closed:
			o.quiesce()
			select {
			case err := <-s.broken: // the last group failed
				s.fail(err)
			default:
			}
			return
		default:
			o.offer()
			o.arm()
			if !o.wait() {
				return
			}
		}
	}
}

// pause lets others go first after a tick, since no caller waits for its outcome: the
// goroutines that can run, among them those of the answers that have just become durable; other
// threads, among them those of the clients on the same machine; and an append that is under
// way, until it is done or a command comes. An owner that stepped one tick after the other
// would keep its processor from all of them for milliseconds where no other one is free.
//
// There is one tick for each append at least, so what is left over comes to its end.
func (o *owner) pause() {
	s := o.s
	runtime.Gosched()
	yield()
	if s.other.isSpare() {
		return // nothing is being appended
	}
	select {
	case <-s.other.back:
	case <-s.mail.wake:
		o.gather()
	}
}

// wait waits for the next work, and does it or lists it. An owner with an empty group leaves
// its seat meanwhile. It reports whether the shard continues.
func (o *owner) wait() bool {
	s, idle := o.s, o.cur.empty()
	var (
		err   error
		alarm bool
		back  chan struct{} // of the other group, if there is one to hand over for it
	)
	if idle {
		s.seat.Unlock()
	} else {
		back = s.other.back
	}
	select {
	case err = <-s.broken:
	case <-back:
		return true
	case <-s.mail.wake:
	case <-s.clock.Alarm():
		alarm = true
	}
	if idle {
		s.seat.Lock()
	}
	switch {
	case err != nil:
		return o.broken(err)
	case alarm:
		o.armed = 0
	}
	o.gather()
	return true
}

// visit continues a visit. The last piece of it is a step like any other, so that it is
// finished when all that it has seen is durable.
func (o *owner) visit(v *visit) (done bool) {
	switch v.generation {
	case o.generation:
	case 0:
		if v.moving = o.eng.IsMoving(v.Namespace); v.moving {
			o.cur.mark(v, len(o.cur.out.Entry))
			return true
		}
		v.generation = o.generation
		if v.Namespace != "" {
			// A query sees its namespace as of its own time.
			v.tick.At, v.tick.Namespace = v.At, v.Namespace
			o.cur.step(o.eng, &v.tick)
		}
	default: // what it has seen was thrown away with the engine
		err := refusalFor(o.scarce)
		err.At = o.s.At()
		v.finish(err.At, err)
		return true
	}
	if !v.step(o) {
		return false
	}
	o.cur.mark(v, len(o.cur.out.Entry))
	return true
}

// arm sets the alarm for the next deadline. An alarm that would ring too early is left alone: a
// needless wake-up costs less than moving it with every heartbeat.
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

// admit tells the engine which commands it may admit, if that has changed.
func (o *owner) admit() {
	low := o.now < o.fullUntil || o.s.journal.Low()
	kept, memory := low && o.s.kept.Load(), o.s.lowMemory()
	if low == o.limit.LowSpace && kept == o.limit.Kept && memory == o.limit.LowMemory && o.draining == o.limit.Draining {
		return
	}
	switch {
	case low && !o.limit.LowSpace:
		o.s.log.Warn("the journal is nearly out of space: nothing new is admitted, releases still work")
	case !low && o.limit.LowSpace:
		o.s.log.Info("the journal has space again")
	}
	switch {
	case memory && !o.limit.LowMemory:
		o.s.log.Warn("memory is nearly full: nothing new is admitted, releases still work")
	case !memory && o.limit.LowMemory:
		o.s.log.Info("memory is available again")
	}
	o.setLimit(low)
}

// setLimit steps a Limit. It lets no time pass: in each namespace that is left to
// its own commands.
func (o *owner) setLimit(low bool) {
	if o.cur.full() {
		o.hand()
	}
	o.limit = &engine.Limit{LowSpace: low, Kept: low && o.s.kept.Load(), LowMemory: o.s.lowMemory(), Draining: o.draining}
	o.cur.step(o.eng, o.limit)
}

// broken is called when a group could not be made durable. It reports whether the shard
// continues.
func (o *owner) broken(err error) bool {
	if errors.Is(err, journal.ErrNoSpace) {
		err = o.rebuild(err)
	}
	return o.fail(err)
}

// fail finishes the shard if there is an error.
func (o *owner) fail(err error) bool {
	if err == nil {
		return true
	}
	o.s.fail(err)
	o.refuseWaiting(closedFor(err))
	return false
}

// refuseWaiting answers all that waits without stepping it, and returns when that
// is done. It reports whether nothing more can come.
func (o *owner) refuseWaiting(why *interlock.Error) (closed bool) {
	if !o.cur.empty() {
		o.hand()
	}
	o.gather()
	for o.ring.n > 0 {
		q := o.ring.pop()
		for listed := true; listed; _, listed = o.s.mail.take(q, never) {
			for q.taken() > 0 {
				if o.cur.full() {
					o.hand()
				}
				o.cur.refusal = why
				o.cur.mark(q.pop(), 0)
			}
		}
	}
	o.quiesce()
	return o.closed
}
