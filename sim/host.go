package sim

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// host is a machine with a server process, which may be down, frozen, cut off, or believe that it owns a shard when
// another one does.
type host struct {
	w      *world
	number int
	owners []*owner // what it is to each shard
	table  []*host  // which host it believes to own each shard; nil: none that it knows
	life   int      // of the process: what was planned in an earlier one does not happen
	frozen bool
	late   []func() // what came while it was frozen

	base  time.Duration // by how much its wall clock is wrong
	drift float64
	cut   bool // unreachable for all
	deaf  bool // it does not reach the engine of the journal
}

func newHost(w *world, number int) *host {
	h := &host{
		w: w, number: number, base: w.about(time.Minute) - time.Minute,
		drift: 1 + w.plan.drift*(2*w.rng.Float64()-1), table: make([]*host, len(w.ledgers)),
	}
	for _, l := range w.ledgers {
		h.owners = append(h.owners, &owner{h: h, l: l})
	}
	return h
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

// look does after every event of the process what may not wait: a machine that has
// stopped does nothing any more.
func (h *host) look() {
	for _, o := range h.owners {
		if o.shard != nil && o.l.store.dead(o) {
			o.gone()
		}
	}
}

// serves reports whether the process owns a shard, as far as it knows.
func (h *host) serves() bool {
	for _, o := range h.owners {
		if o.shard != nil {
			return true
		}
	}
	return false
}

// die ends the process. power means that the machine loses its power, too.
func (h *host) die(how string, power bool) {
	w := h.w
	w.story.tell("host %d %s%s", h.number, how, map[bool]string{true: ", and its power is cut"}[power])
	h.life++
	h.late, h.frozen = nil, false
	for _, o := range h.owners {
		o.drop(power)
	}
	for _, c := range w.clients {
		c.lostHost(h)
	}
	clear(h.table)
	h.base += w.about(2*time.Second) - 2*time.Second // the wall clock was set
	for _, o := range h.owners {
		o.soon(w.rest(), o.stand)
	}
}

// rest is how long a server waits before it tries to own a shard again.
func (w *world) rest() time.Duration {
	if w.calm {
		return 100 * time.Millisecond
	}
	return w.about(700 * time.Millisecond)
}

// stop shuts the process down as an operator would.
func (h *host) stop() {
	if h.frozen || !h.serves() {
		return
	}
	h.w.totals.fault("orderly restart")
	for _, o := range h.owners {
		o.close()
	}
	h.die("was stopped", false)
}

// freeze stops the process for a while, as SIGSTOP does.
func (h *host) freeze(d time.Duration) {
	if h.frozen || !h.serves() {
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
		for _, o := range h.owners {
			if o.clock != nil {
				o.clock.paused(h.w.now - began)
			}
		}
		late := h.late
		h.late = nil
		for _, do := range late {
			do()
		}
		for _, o := range h.owners {
			o.kick()
		}
	})
}

// take takes a command from the network, or from another host, which has forwarded it. What is not this host's goes to
// the host that its table names, once.
func (h *host) take(cmd engine.Command, from *line, to *op, forwarded bool) {
	l := h.w.ledgerOf(cmd.Header().Namespace)
	o, next := h.owners[l.number], h.table[l.number]
	switch {
	case o.shard != nil:
		o.take(cmd, from, to)
	case forwarded || next == nil || next == h:
		from.refuse(to, interlock.CodeNotOwner)
	default:
		h.w.totals.fault("forwarded")
		h.w.after(h.w.about(h.w.plan.latency), func() {
			if !next.cut {
				next.run(next.life, func() { next.take(cmd, from, to, true) })
			}
		})
	}
}

// learn has the other hosts find out which one owns a shard, some of them late.
func (w *world) learn(o *owner) {
	for _, h := range w.hosts {
		d := w.about(pick(w.rng, 50*time.Millisecond, time.Second, 10*time.Second))
		if h == o.h {
			d = 0
		}
		h.soon(d, func() { h.table[o.l.number] = o.h })
	}
}
