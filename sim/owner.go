package sim

import (
	"context"
	"errors"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/shard"
)

// owner is what a process is to one shard: its owner, while shard is set, as far as it knows.
type owner struct {
	h      *host
	l      *ledger
	shard  *shard.Manual // nil while it does not serve
	clock  *clock
	epoch  interlock.Epoch
	tenure int // the number of its journal, by the audit
	life   int // what was planned in an earlier one does not happen

	stepping  bool // the owner's next turn is planned
	appending bool // the committer's next write is planned
}

// soon has do called after d, if the process and this ownership live then.
func (o *owner) soon(d time.Duration, do func()) {
	life := o.life
	o.h.soon(d, func() {
		if o.life == life {
			do()
		}
	})
}

// start takes the shard over.
func (o *owner) start() {
	if o.shard != nil || o.h.frozen {
		return
	}
	h, l, w := o.h, o.l, o.h.w
	life := o.life
	j, err := l.store.open(o)
	if err != nil {
		if l.store.dead(o) {
			w.totals.fault("crash in recovery")
			h.die("died while it opened the journal", true)
			return
		}
		if !l.store.excuses(err) {
			w.fail("journal", "host %d cannot open shard %d: %v", h.number, l.number, err)
			return
		}
		l.store.died(o, false)
		o.soon(w.about(time.Second), o.start)
		return
	}
	if err := l.audit.opened(o, j); err != nil {
		if !l.store.dead(o) {
			w.fail("journal", "epoch %d cannot be read: %v", j.Epoch(), err)
			return
		}
		w.totals.fault("crash in recovery")
		h.die("died while it read the journal", true)
		return
	}
	if w.failed != nil {
		return
	}
	o.epoch = j.Epoch()
	o.clock = &clock{o: o, start: w.now, base: epochStart.Add(w.now + h.base)}
	s, err := shard.OpenManual(context.Background(), shard.Config{
		Journal: &tap{j, o}, Number: l.number, Clock: o.clock, SnapshotBytes: w.plan.snapshot,
		PictureEvents: w.plan.picture, KeepBytes: w.plan.keep, FenceJump: jump(j),
	}, h.watch)
	if o.life != life {
		return
	}
	if l.store.dead(o) {
		w.totals.fault("crash in recovery")
		h.die("died in its recovery", true)
		return
	}
	if err == nil {
		err = adopt(j)
	}
	if err != nil {
		if !l.store.excuses(err) {
			w.fail("I17", "host %d cannot replay the journal: %v", h.number, err)
			return
		}
		o.end("could not begin its term: "+err.Error(), false)
		return
	}
	o.shard = s
	l.store.began()
	w.totals.Recoveries++
	w.story.tell("host %d owns shard %d: epoch %d, index %d", h.number, l.number, o.epoch, s.At().Index)
	w.learn(o)
	l.audit.compare(o)
	o.kick()
}

// adopter is a journal that may lack entries that were acknowledged.
type adopter interface {
	Copied() bool
	Adopt() error
}

// jump is how far fences jump when a term begins, and adopt is called when that is durable. A server does the same.
func jump(j journal.Journal) uint64 {
	if c, ok := j.(adopter); ok && c.Copied() {
		return 1 << 40
	}
	return 0
}

func adopt(j journal.Journal) error {
	if c, ok := j.(adopter); ok && c.Copied() {
		return c.Adopt()
	}
	return nil
}

// watch is the stopwatch of the process, which takes the cost of its turns for granted.
func (h *host) watch() time.Time {
	h.w.ticks++
	return time.Unix(0, int64(h.w.now)+int64(h.w.ticks)*int64(h.w.plan.turnCost)/8)
}

// kick plans the owner's next turn.
func (o *owner) kick() {
	if o.shard == nil || o.stepping {
		return
	}
	o.stepping = true
	o.soon(time.Duration(o.h.w.rng.IntN(50_000)), o.step)
}

// step lets the owner run once.
func (o *owner) step() {
	o.stepping = false
	if o.shard == nil {
		return
	}
	more := o.shard.Turn()
	if o.gone() {
		return
	}
	if err := o.shard.Err(); err != nil {
		o.l.store.failed(o, err)
		o.end("is finished: "+err.Error(), false)
		return
	}
	if o.shard.Appending() && !o.appending {
		o.appending = true
		o.soon(time.Duration(o.h.w.rng.IntN(300_000)), o.append)
	}
	if o.shard.Snapshotting() {
		o.soon(o.h.w.about(5*time.Millisecond), o.snapshot)
	}
	switch {
	case more:
		o.kick()
	case o.shard.Parked():
		o.soon(300*time.Millisecond, o.kick)
	}
}

// append makes the committer write, and later answer.
func (o *owner) append() {
	w := o.h.w
	if o.boundary("before an append") {
		return
	}
	if w.chance(w.plan.trouble) && !w.calm {
		o.l.store.arm(o)
	}
	o.shard.Append()
	o.l.store.disarm()
	if o.gone() {
		return
	}
	if o.boundary("after an append, before its answers") {
		return
	}
	latency := w.about(time.Millisecond)
	if w.plan.disk {
		latency *= 3
	}
	o.soon(latency, o.answer)
}

func (o *owner) answer() {
	o.shard.Answer()
	if o.appending = o.shard.Appending(); o.appending {
		o.soon(0, o.append)
	}
	if o.boundary("after its answers") {
		return
	}
	o.kick()
}

func (o *owner) snapshot() {
	w := o.h.w
	if o.shard == nil || !o.shard.Snapshotting() || o.boundary("before a snapshot") {
		return
	}
	if w.chance(w.plan.snapshots) && !w.calm {
		o.l.store.armSnapshot(o)
	}
	o.shard.Snapshot()
	o.l.store.disarm()
	o.gone()
}

// boundary lets the process die here, sometimes.
func (o *owner) boundary(where string) bool {
	w := o.h.w
	if o.shard == nil {
		return true
	}
	if w.calm || !w.chance(w.plan.boundary) {
		return false
	}
	w.totals.fault("crash " + where)
	o.h.die("dies "+where, w.chance(0.3))
	return true
}

// gone reports whether the machine has stopped, and has the process die then.
func (o *owner) gone() bool {
	if o.shard == nil {
		return true
	}
	if !o.l.store.dead(o) {
		return false
	}
	o.h.w.totals.fault("crash in a system call")
	o.h.die("stops in a system call", o.h.w.chance(0.7))
	return true
}

// end ends this ownership. The process of a journal in a directory ends with it, and one of a journal in an engine goes
// on with its other shards.
func (o *owner) end(how string, power bool) {
	if o.h.w.plan.disk {
		o.h.die(how, power)
		return
	}
	o.h.w.story.tell("host %d, as the owner of shard %d, %s", o.h.number, o.l.number, how)
	o.drop(power)
	o.soon(o.h.w.rest(), o.stand)
}

// drop forgets the shard.
func (o *owner) drop(power bool) {
	o.life++
	o.shard, o.clock, o.stepping, o.appending = nil, nil, false, false
	o.l.store.died(o, power)
	for _, c := range o.h.w.clients {
		c.lostOwner(o)
	}
}

// close closes the shard in order, if it serves.
func (o *owner) close() {
	if o.shard != nil {
		o.shard.Close(context.Background())
	}
}

// leave closes the shard in order, and leaves it to others.
func (o *owner) leave() {
	if o.shard == nil || o.h.frozen {
		return
	}
	o.h.w.totals.fault("shard given up")
	o.close()
	o.end("gives it up", false)
}

// stand makes the process wait for as long as another one serves. A server that is wrong about
// that takes over all the same: the faults see to it.
func (o *owner) stand() {
	if now := o.l.served(); now != nil && now != o && !now.h.frozen {
		o.soon(o.h.w.about(2*time.Second), o.stand)
		return
	}
	o.start()
}

// take carries a command out.
func (o *owner) take(cmd engine.Command, from *line, to *op) {
	if !from.reaches(o) {
		from.refuse(to, interlock.CodeNotOwner)
		return
	}
	o.h.w.totals.Commands++
	if r, ok := cmd.Header().From.(*receiver); ok {
		r.owner, r.life, r.tenure, r.losses, r.arrived = o, o.life, o.tenure, o.l.audit.loss.count, o.h.w.now
	}
	o.l.audit.submitted(cmd)
	if err := o.shard.Submit(cmd); err != nil {
		code := interlock.CodeInternal
		var e *interlock.Error
		if errors.As(err, &e) {
			code = e.Code
		}
		from.refuse(to, code)
		return
	}
	o.kick()
}
