package sim

import (
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// client is how an agent reaches the servers: it numbers or names its commands, sends them
// again when no answer comes, goes to another server when it must, and abandons them in the
// end. It never knows whether an abandoned command was carried out.
type client struct {
	w         *world
	name      string
	namespace interlock.Namespace
	rng       func(n int) int

	line      *line
	session   interlock.SessionID  // zero: without one
	principal *interlock.Principal // nil: in a world without credentials
	numbers   bool                 // it numbers its commands instead of naming them
	seq       uint64
	acked     uint64
	unseen    uint64 // the lowest number with an answer that the client has given up; 0 for none
	open      []*op  // not answered yet, oldest first
	attach    func() // makes the line known to the server after a reconnect
}

// line is one connection of a client to one process.
type line struct {
	c      *client
	host   *host
	life   int
	owner  *owner // that it has reached, perhaps by way of the host; nil for none yet
	tenure int    // of that owner
	number uint64 // engine.Head.Link
	broken bool
	order  [2]time.Duration // when the last message of each direction arrives: a stream keeps its order
}

// op is one command as its client sees it: from when it was first sent until it is
// answered, or for ever.
type op struct {
	c        *client
	number   uint64
	words    string
	build    func() engine.Command // a new one each time
	head     engine.Head
	invoked  time.Duration
	floor    interlock.Index // the highest index in an answer before it was sent
	losses   int             // how often the journal had lost its tail when it was sent
	tries    int
	patience int // tries left
	answered bool
	said     string // what a good answer said
	over     bool   // the client has given up or has its last answer
	then     func(*engine.Effect, interlock.At)
}

const (
	up   = 0
	down = 1
)

// send begins an operation. then gets every answer to it, the ends of waits too.
func (c *client) send(words string, build func() engine.Command, then func(*engine.Effect, interlock.At)) *op {
	w, a := c.w, c.audit()
	w.ids++
	o := &op{
		c: c, number: w.ids, words: words, build: build, invoked: w.now, floor: a.told, losses: a.loss.count,
		patience: 2 + c.rng(12), then: then,
		head: engine.Head{Namespace: c.namespace, Session: c.session, Principal: c.principal},
	}
	if c.principal != nil {
		o.head.Actor = c.principal.Name
	}
	switch build().(type) {
	case *engine.Heartbeat, *engine.Attach, *engine.Poll, *engine.GetLease, *engine.CheckFence,
		*engine.Pull, *engine.FollowTask, *engine.CloseSession:
	default:
		if c.numbers && !c.session.IsZero() {
			c.seq++
			o.head.Seq, o.head.Acked = c.seq, c.acked
		} else {
			o.head.RequestID = fmt.Sprintf("%s-%d", c.name, o.number)
		}
	}
	if w.calm {
		o.patience = 1 << 20
	}
	c.open = append(c.open, o)
	o.try()
	return o
}

// try sends the command over the client's line, and once more after a while.
func (o *op) try() {
	c, w := o.c, o.c.w
	if o.answered || o.over {
		return
	}
	if o.patience--; o.patience < 0 {
		w.totals.GivenUp++
		o.drop()
		return
	}
	o.tries++
	if o.tries > 1 {
		w.totals.Retries++
	}
	c.connect()
	if w.story.told() {
		w.story.tell(
			"%s → host %d: %s%s", c.name, c.line.host.number, o.words, map[bool]string{true: " (again)"}[o.tries > 1],
		)
	}
	c.line.up(o)
	w.after(w.about(300*time.Millisecond)*time.Duration(min(o.tries, 8)), func() {
		if !o.answered && !o.over {
			if o.tries%3 == 2 {
				c.lost()
			}
			o.try()
		}
	})
}

// drop forgets the operation: it stays open for ever.
func (o *op) drop() {
	o.over = true
	c := o.c
	if o.head.Seq > 0 && (c.unseen == 0 || o.head.Seq < c.unseen) {
		c.unseen = o.head.Seq
	}
	for i, other := range c.open {
		if other == o {
			c.open = append(c.open[:i], c.open[i+1:]...)
			return
		}
	}
}

// connect makes sure that there is a line.
func (c *client) connect() {
	if c.line != nil && !c.line.broken && c.line.life == c.line.host.life {
		return
	}
	c.w.links++
	hosts := c.w.hosts
	at := c.rng(len(hosts))
	if now := c.audit().owner; now != nil && c.rng(3) > 0 {
		at = now.h.number - 1
	}
	c.line = &line{c: c, host: hosts[at], life: hosts[at].life, number: c.w.links}
	if c.attach != nil {
		c.attach()
	}
}

// audit is that of the shard that the client's namespace is in.
func (c *client) audit() *audit { return c.w.ledgerOf(c.namespace).audit }

// lost ends the client's line; the server hears of it later.
func (c *client) lost() {
	l := c.line
	if l == nil || l.broken {
		return
	}
	l.broken = true
	head := engine.Head{Namespace: c.namespace, Session: c.session, Link: l.number}
	c.w.after(c.w.about(pick(c.w.rng, 200*time.Millisecond, 8*time.Second)), func() {
		l.host.run(l.life, func() { l.host.take(&engine.Detach{Head: head}, l, nil, false) })
	})
}

// lostHost ends the client's line when the process at its end has died.
func (c *client) lostHost(h *host) {
	if c.line != nil && c.line.host == h {
		c.line.broken = true
	}
}

// lostOwner ends the client's line when the owner has gone that its commands have reached.
func (c *client) lostOwner(o *owner) {
	if c.line != nil && c.line.owner == o && c.line.tenure <= o.tenure {
		c.line.broken = true
	}
}

// reaches reports whether the line may carry a command to an owner. It belongs to the first one that it reached: the
// next one knows nothing of it.
func (l *line) reaches(o *owner) bool {
	if l.owner == nil {
		l.owner, l.tenure = o, o.tenure
	}
	return l.owner == o && l.tenure == o.tenure
}

// passes returns how often a message arrives, and when; it may cut the line.
func (l *line) passes(dir int) (times []time.Duration) {
	w := l.c.w
	if l.broken || l.host.cut {
		w.totals.fault("message on a dead line")
		return nil
	}
	if !w.calm {
		switch {
		case w.chance(w.plan.cut):
			w.totals.fault("connection cut")
			l.c.lost()
			return nil
		case w.chance(w.plan.drop):
			w.totals.fault("message dropped")
			return nil
		case w.chance(w.plan.duplicate):
			w.totals.fault("message duplicated")
			times = append(times, w.about(w.plan.latency*4))
		}
	}
	at := w.about(w.plan.latency)
	if w.chance(0.02) {
		at *= 20
	}
	if l.c.numbers { // a stream
		at = max(w.now+at, l.order[dir]) - w.now
		l.order[dir] = w.now + at
	}
	return append(times, at)
}

// up carries a command to the server.
func (l *line) up(o *op) {
	for _, d := range l.passes(up) {
		l.c.w.after(d, func() {
			if l.host.cut {
				return
			}
			l.host.run(l.life, func() {
				cmd := o.build()
				h := cmd.Header()
				*h = o.head
				h.Link, h.From = l.number, &receiver{line: l, op: o, cmd: cmd}
				l.host.take(cmd, l, o, false)
			})
		})
	}
}

// receiver takes the answers of one command from the shard and passes them to the network.
type receiver struct {
	line *line
	op   *op
	cmd  engine.Command

	// Where it arrived, and when.
	owner   *owner
	life    int
	tenure  int
	losses  int
	arrived time.Duration
}

// Deliver implements shard.Receiver.
func (r *receiver) Deliver(eff *engine.Effect, at interlock.At) {
	o := r.owner
	if o.life != r.life || o.l.store.dead(o) {
		return // the process died before it could report it
	}
	w := o.h.w
	w.story.mix(uint64(w.now), r.op.number, uint64(eff.Outcome), uint64(at.Index), uint64(eff.Lease.Fence))
	o.l.audit.left(r, eff, at)
	r.line.down(r.op, *eff, at)
}

func (l *line) down(o *op, eff engine.Effect, at interlock.At) {
	for _, d := range l.passes(down) {
		life := l.life
		l.c.w.after(d, func() {
			if !l.broken && !l.host.cut && l.host.life == life {
				o.answer(&eff, at)
			}
		})
	}
}

// refuse is the server's API, which carries nothing out.
func (l *line) refuse(o *op, code interlock.Code) {
	if o != nil {
		l.down(o, engine.Effect{Outcome: engine.Refused, Code: code}, interlock.At{})
	}
}

// answer takes an answer from the network.
func (o *op) answer(eff *engine.Effect, at interlock.At) {
	c, w := o.c, o.c.w
	if o.over {
		return
	}
	if eff.Outcome == engine.Refused {
		switch eff.Code {
		case interlock.CodeUnreachable, interlock.CodeNotOwner, interlock.CodeShuttingDown:
			c.lost()
			return // the next try goes elsewhere
		case interlock.CodeOutcomeUnknown, interlock.CodeOverloaded, interlock.CodeNoSpace, interlock.CodeInternal:
			return
		}
	}
	w.totals.Answers++
	c.audit().received(o, eff, at)
	if w.story.told() {
		w.story.tell("%s ← %v %s, index %d", c.name, o.words, shown(eff), at.Index)
	}
	first := !o.answered
	o.answered = true
	if o.head.Seq > 0 && first {
		c.acknowledge()
	}
	if first {
		for i, other := range c.open {
			if other == o {
				c.open = append(c.open[:i], c.open[i+1:]...)
				break
			}
		}
	}
	if o.then != nil {
		o.then(eff, at)
	}
}

// acknowledge moves the number up to which everything was answered.
func (c *client) acknowledge() {
	least := c.seq + 1
	if c.unseen > 0 {
		least = c.unseen
	}
	for _, o := range c.open {
		if o.head.Seq > 0 && !o.answered {
			least = min(least, o.head.Seq)
		}
	}
	c.acked = max(c.acked, least-1)
}

func shown(eff *engine.Effect) string {
	s := eff.Outcome.String()
	if eff.Code != "" {
		s += " " + string(eff.Code)
	}
	if eff.Lease.Fence > 0 {
		s += fmt.Sprintf(" fence %d until +%v", eff.Lease.Fence, eff.Lease.ExpiresIn)
	}
	return s
}
