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

// host is a machine with a server process, which may be down, frozen, or believe that it
// owns the shard when another one does.
type host struct {
	w      *world
	number int
	shard  *shard.Manual // nil while it does not serve
	clock  *clock
	epoch  interlock.Epoch
	life   int // of the process: what was planned in an earlier one does not happen
	frozen bool
	late   []func() // what came while it was frozen

	stepping  bool // the owner's next turn is planned
	appending bool // the committer's next write is planned

	base  time.Duration // by how much its wall clock is wrong
	drift float64
	cut   bool // unreachable for all
}

func newHost(w *world, number int) *host {
	return &host{
		w: w, number: number, base: w.about(time.Minute) - time.Minute,
		drift: 1 + w.plan.drift*(2*w.rng.Float64()-1),
	}
}

// soon has do called after d, if the process lives then; while it is frozen it waits.
func (h *host) soon(d time.Duration, do func()) {
	life := h.life
	h.w.after(d, func() { h.run(life, do) })
}

func (h *host) run(life int, do func()) {
	switch {
	case h.life != life:
	case h.frozen:
		h.late = append(h.late, func() { h.run(life, do) })
	default:
		do()
		h.look()
	}
}

// start makes the process take the shard over.
func (h *host) start() {
	if h.shard != nil {
		return
	}
	w := h.w
	j, err := w.store.open(h)
	if err != nil {
		if w.store.dead(h) {
			w.totals.fault("crash in recovery")
			h.die("died while it opened the journal", true)
			return
		}
		if !errors.Is(err, journal.ErrLocked) && !errors.Is(err, journal.ErrNoSpace) {
			w.fail("journal", "host %d cannot open it: %v", h.number, err)
			return
		}
		w.store.died(h, false)
		h.soon(w.about(time.Second), h.start)
		return
	}
	if err := w.audit.opened(h, j); err != nil {
		if !w.store.dead(h) {
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
	h.epoch = j.Epoch()
	h.clock = &clock{h: h, start: w.now, base: epochStart.Add(w.now + h.base)}
	life := h.life
	s, err := shard.OpenManual(context.Background(), shard.Config{
		Journal: &tap{j, h}, Clock: h.clock, SnapshotBytes: w.plan.snapshot, PictureEvents: w.plan.picture,
		KeepBytes: w.plan.keep,
	}, h.watch)
	if h.life != life {
		return
	}
	if w.store.dead(h) {
		w.totals.fault("crash in recovery")
		h.die("died in its recovery", true)
		return
	}
	if err != nil {
		if !errors.Is(err, journal.ErrNoSpace) && !errors.Is(err, journal.ErrFailed) && !errors.Is(err, journal.ErrFenced) {
			w.fail("I17", "host %d cannot replay the journal: %v", h.number, err)
			return
		}
		h.die("could not begin its term: "+err.Error(), false)
		return
	}
	h.shard = s
	w.totals.Recoveries++
	w.story.tell("host %d owns the shard: epoch %d, index %d", h.number, h.epoch, s.At().Index)
	w.audit.compare(h)
	h.kick()
}

// watch is the stopwatch of the process, which takes the cost of its turns for granted.
func (h *host) watch() time.Time {
	h.w.ticks++
	return time.Unix(0, int64(h.w.now)+int64(h.w.ticks)*int64(h.w.plan.turnCost)/8)
}

// kick plans the owner's next turn.
func (h *host) kick() {
	if h.shard == nil || h.stepping {
		return
	}
	h.stepping = true
	h.soon(time.Duration(h.w.rng.IntN(50_000)), h.step)
}

// step lets the owner run once.
func (h *host) step() {
	h.stepping = false
	if h.shard == nil {
		return
	}
	more := h.shard.Turn()
	if h.gone() {
		return
	}
	if err := h.shard.Err(); err != nil {
		h.die("is finished: "+err.Error(), false)
		return
	}
	if h.shard.Appending() && !h.appending {
		h.appending = true
		h.soon(time.Duration(h.w.rng.IntN(300_000)), h.append)
	}
	if h.shard.Snapshotting() {
		h.soon(h.w.about(5*time.Millisecond), h.snapshot)
	}
	switch {
	case more:
		h.kick()
	case h.shard.Parked():
		h.soon(300*time.Millisecond, h.kick)
	}
}

// append makes the committer write, and later answer.
func (h *host) append() {
	w := h.w
	if h.boundary("before an append") {
		return
	}
	if w.chance(w.plan.boundary) && !w.calm {
		w.store.arm(h)
	}
	h.shard.Append()
	if h.gone() {
		return
	}
	if h.boundary("after an append, before its answers") {
		return
	}
	latency := w.about(time.Millisecond)
	if w.plan.disk {
		latency *= 3
	}
	h.soon(latency, h.answer)
}

func (h *host) answer() {
	h.shard.Answer()
	if h.appending = h.shard.Appending(); h.appending {
		h.soon(0, h.append)
	}
	if h.boundary("after its answers") {
		return
	}
	h.kick()
}

func (h *host) snapshot() {
	if h.shard == nil || !h.shard.Snapshotting() || h.boundary("before a snapshot") {
		return
	}
	if d, ok := h.w.store.(*disk); ok && h.w.chance(0.1) && !h.w.calm {
		h.w.totals.fault("crash in a snapshot")
		d.stop(12)
	}
	h.shard.Snapshot()
	h.gone()
}

// boundary lets the process die here, sometimes.
func (h *host) boundary(where string) bool {
	if h.shard == nil {
		return true
	}
	if h.w.calm || !h.w.chance(h.w.plan.boundary) {
		return false
	}
	h.w.totals.fault("crash " + where)
	h.die("dies "+where, h.w.chance(0.3))
	return true
}

// gone reports whether the machine has stopped, and has the process die then.
func (h *host) gone() bool {
	if h.shard == nil {
		return true
	}
	if !h.w.store.dead(h) {
		return false
	}
	h.w.totals.fault("crash in a system call")
	h.die("stops in a system call", h.w.chance(0.7))
	return true
}

// look does after every event of the process what may not wait: a machine that has
// stopped does nothing any more.
func (h *host) look() {
	if h.shard != nil && h.w.store.dead(h) {
		h.gone()
	}
}

// die ends the process. power means that the machine loses its power, too.
func (h *host) die(how string, power bool) {
	w := h.w
	w.story.tell("host %d %s%s", h.number, how, map[bool]string{true: ", and its power is cut"}[power])
	h.life++
	h.shard, h.late, h.frozen, h.stepping, h.appending = nil, nil, false, false, false
	w.store.died(h, power)
	for _, c := range w.clients {
		c.lostHost(h)
	}
	h.base += w.about(2*time.Second) - 2*time.Second // the wall clock was set
	wait := w.about(700 * time.Millisecond)
	if w.calm {
		wait = 100 * time.Millisecond
	}
	h.soon(wait, h.stand)
}

// stand makes the process wait for as long as another one serves. A server that is wrong about
// that takes over all the same: the faults see to it.
func (h *host) stand() {
	if now := h.w.audit.owner; now != nil && now != h && now.shard != nil && !now.frozen {
		h.soon(h.w.about(2*time.Second), h.stand)
		return
	}
	h.start()
}

// stop shuts the process down as an operator would.
func (h *host) stop() {
	if h.shard == nil || h.frozen {
		return
	}
	h.w.totals.fault("orderly restart")
	h.shard.Close(context.Background())
	h.die("was stopped", false)
}

// freeze stops the process for a while, as SIGSTOP does.
func (h *host) freeze(d time.Duration) {
	if h.shard == nil || h.frozen {
		return
	}
	h.w.totals.fault("pause")
	h.w.story.tell("host %d is frozen for %v", h.number, d)
	h.frozen = true
	life, began := h.life, h.w.now
	h.w.after(d, func() {
		if h.life != life {
			return
		}
		h.frozen = false
		h.clock.paused(h.w.now - began)
		late := h.late
		h.late = nil
		for _, do := range late {
			do()
		}
		h.kick()
	})
}

// take takes a command from the network.
func (h *host) take(cmd engine.Command, from *line, to *op) {
	if h.shard == nil {
		from.refuse(to, interlock.CodeUnreachable)
		return
	}
	h.w.totals.Commands++
	if err := h.shard.Submit(cmd); err != nil {
		code := interlock.CodeInternal
		var e *interlock.Error
		if errors.As(err, &e) {
			code = e.Code
		}
		from.refuse(to, code)
		return
	}
	h.kick()
}

// clock is the time of one process: wall time at its start, and then a monotonic clock
// that is a little fast or slow, without the gaps in which the process was stopped for
// more than a second, as the shard's own clock leaves them out.
type clock struct {
	h     *host
	start time.Duration
	base  engine.Time
	gaps  time.Duration
	last  engine.Time
	alarm engine.Time // the earliest one that is planned; 0 for none
}

func (c *clock) Now() engine.Time {
	at := c.base.Add(time.Duration(float64(c.h.w.now-c.start) * c.h.drift)).Add(-c.gaps)
	c.last = max(c.last, at)
	return c.last
}

func (c *clock) paused(d time.Duration) {
	if d > time.Second {
		c.gaps += time.Duration(float64(d) * c.h.drift)
	}
}

// SetAlarm plans the owner's turn for when the clock will show at.
func (c *clock) SetAlarm(at engine.Time) {
	if c.alarm != 0 && c.alarm <= at {
		return
	}
	c.alarm = at
	d := time.Duration(float64(at.Sub(c.Now())) / c.h.drift)
	c.h.soon(max(d, 1), func() {
		if c.alarm == at {
			c.alarm = 0
		}
		if h := c.h; !h.stepping { // at this very moment, so that nothing can be early unseen
			for h.shard != nil && h.shard.Turn() {
			}
			h.step()
		}
	})
}

func (c *clock) Alarm() <-chan struct{} { return nil }
