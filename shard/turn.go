package shard

import (
	"math"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// The order in which the owner executes the waiting commands.
//
// The namespaces with pending work stand in a ring, and each gets a turn when it has come to
// the front: a slice of the owner's time, and then it is at the end again, behind those that
// have come meanwhile. The overrun of a turn, which occurs because the cost of a command is
// unknown before it is carried out, is taken from the namespace's next turns.
//
//	front                                                          end
//	  b: 1 command   c: 40 commands   d: a tick   a: 30,000 commands
//
// So a command waits for those of its own namespace that came before it, and otherwise for the
// turn that is under way and one turn of each namespace that stands in the ring, whatever they
// have sent. Then the ring has gone round: of n namespaces that always have work, each gets one
// n-th of the owner's time. A namespace that has the shard to itself pays for nothing.
//
// A turn is turnCommands commands or turnTime, whichever comes first, and overruns
// by at most a stretch of commands, or a query, a commit or a command that looks at
// much.
//
// A tick is work that is due or left over, and it has no answer. So it is a turn of its own, of one
// step: a namespace that searches for deadlocks among very many makes others wait for one slice of
// that, whatever time it has left. Answers do not wait for it: what was stepped before goes to the
// committer first, if that is ready. Commands do not keep the search from its end: each carries out
// a slice of it as well.
const (
	// turnCommands bounds the commands of a turn.
	turnCommands = 64

	// leastTime is the minimum time that a command counts for.
	leastTime = 1500 * time.Nanosecond

	// turnTime is the length of a turn: 96 µs.
	turnTime = turnCommands * leastTime

	// stretch is after how many commands of a turn the clock is looked at; after a
	// query, a commit or a tick it always is, and after a command that looked at more
	// than dear objects.
	stretch = 8
	dear    = 50
)

// never is a time that does not come.
const never = engine.Time(math.MaxInt64)

// turn runs the turn of the namespace at the front of the ring. It reports whether that ended with
// a tick, done or still to do.
func (o *owner) turn() (ticked bool) {
	if o.admit(); o.cur.full() {
		return false
	}
	q := o.ring.pop()
	if o.isDue(q) {
		o.offer() // its commands carry out some of the due work
	}
	q.credit = min(q.credit+turnTime, turnTime)
	if o.ring.n == 0 {
		q.credit = turnTime
	}
	began := o.s.watch()
	if q.taken() > 0 {
		o.cur.lag = max(o.cur.lag, began.Sub(q.waited))
	}
	listed, fresh := true, true
	for listed && !ticked && q.credit > 0 && !o.cur.full() {
		var steps int
		steps, listed, ticked = o.advance(q, fresh)
		fresh = false
		now := o.s.watch()
		spent := max(now.Sub(began), time.Duration(steps)*leastTime)
		began = now
		o.cur.work += spent
		q.credit -= spent
	}
	o.gather() // newcomers go ahead of it
	if listed {
		o.ring.push(q)
	}
	if o.cur.work >= turnTime {
		o.offer() // although more could be stepped into it
	}
	return ticked
}

// isDue reports whether something is due or left over in a namespace.
func (o *owner) isDue(q *backlog) bool {
	if o.cur.empty() {
		return false // and it does not matter
	}
	at, ok := o.eng.Due(q.namespace)
	return ok && at <= o.now
}

// advance carries out a stretch of a namespace's commands, or if none waits a bounded part of
// its due work, unless the turn has begun with commands. If there is neither, the namespace is
// listed no more.
//
// A tick has the time when the namespace was seen to have nothing waiting, so every heartbeat that
// came before was stepped: also after a pause, when many wait and everything seems to be due.
func (o *owner) advance(q *backlog, fresh bool) (steps int, listed, ticked bool) {
	if q.taken() == 0 {
		due, ok := o.eng.Due(q.namespace)
		if !ok {
			due = never
		}
		now, listed := o.s.mail.take(q, due)
		if !listed {
			return 0, false, false
		}
		if q.taken() == 0 {
			if !fresh {
				return 0, true, true
			}
			o.offer()
			o.tick = engine.Tick{Head: engine.Head{At: now, Namespace: q.namespace}}
			o.cur.step(o.eng, &o.tick)
			return 1, true, true
		}
	}
	for steps < stretch && q.taken() > 0 && !o.cur.full() {
		steps++
		switch cmd := q.pop().(type) {
		case *visit:
			if !o.visit(cmd) {
				q.unpop(cmd)
			}
			return steps, true, false // its cost is unknown
		case *engine.Commit:
			o.cur.step(o.eng, cmd)
			return steps, true, false // nor here: a merge goes through megabytes
		default:
			o.cur.step(o.eng, cmd)
			if o.eng.Cost() > dear {
				return steps, true, false
			}
		}
	}
	return steps, true, false
}

// gather puts into the ring what has come since, and, whenever the ring has gone
// round, what is due.
func (o *owner) gather() {
	o.found, o.now, o.closed = o.s.mail.collect(o.found[:0])
	for i, q := range o.found {
		o.ring.push(q)
		o.found[i] = nil
	}
	if o.left--; o.left > 0 && o.ring.n > 0 {
		return
	}
	if at, ok := o.eng.NextTimer(); ok && at <= o.now {
		o.eng.DueBy(o.now, o.remind)
	}
	o.left = o.ring.n
}

// remind lists a namespace in which something is due.
func (o *owner) remind(namespace interlock.Namespace) {
	if q := o.s.mail.list(namespace); q != nil {
		o.ring.push(q)
	}
}

// ring is a first-in, first-out list.
type ring struct {
	buf  []*backlog
	head int
	n    int
}

func (r *ring) push(q *backlog) {
	if r.n == len(r.buf) {
		grown := make([]*backlog, max(8, 2*r.n))
		n := copy(grown, r.buf[r.head:])
		copy(grown[n:], r.buf[:r.head])
		r.buf, r.head = grown, 0
	}
	r.buf[(r.head+r.n)%len(r.buf)] = q
	r.n++
}

func (r *ring) pop() *backlog {
	q := r.buf[r.head]
	r.buf[r.head] = nil
	r.head = (r.head + 1) % len(r.buf)
	r.n--
	return q
}
