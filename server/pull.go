package server

import (
	"encoding/binary"
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// What workers do: they ask for tasks, and say what became of them.

// pull is POST /v1/queues/{queue}/pull. It takes no Idempotency-Key: what was handed to
// a caller that never heard of it goes back when its lease ends.
func (c *call) pull() {
	name, ok := c.pathName()
	if !ok {
		return
	}
	cmd := &engine.Pull{Head: c.head(), ID: freshID(), Queue: name}
	var wait time.Duration
	if !c.body(func(d *jsonIn) { wait = decodePull(d, cmd) }) {
		return
	}
	cmd.Leases = freshLeases(cmd.Max)
	if wait <= 0 {
		if eff, at, ok := c.do(cmd); ok {
			c.handedOut(&eff, at)
		}
		return
	}
	cmd.Attach = true
	idle := *cmd // the engine owns the command once it is submitted
	last, ok := c.listen(cmd, &cmd.Head, wait, func(*engine.Effect) *vigil { return idleAs(idle) })
	switch eff := &last.eff; {
	case !ok:
	case eff.Outcome == engine.Refused && eff.Code != interlock.CodeUnknownTicket:
		c.refused(eff, last.at)
	default:
		c.handedOut(eff, last.at)
	}
}

func freshLeases(n int) [][16]byte {
	ids := make([][16]byte, n)
	for i := range ids {
		ids[i] = freshID()
	}
	return ids
}

// idleAs waits for a task. Who leaves is idle no more, so that nothing is handed to
// nobody.
func idleAs(pull engine.Pull) *vigil {
	leave := func(h engine.Head) engine.Command { return &engine.Leave{Head: h, Ticket: pull.ID} }
	return &vigil{
		open: func(eff *engine.Effect) bool { return eff.Outcome == engine.Queued },
		again: func(h engine.Head) engine.Command {
			p := pull
			p.Head, p.Leases = h, freshLeases(pull.Max)
			return &p
		},
		last:  leave,
		leave: leave,
	}
}

// handedOut answers a worker with its tasks, if there are any.
func (c *call) handedOut(eff *engine.Effect, at interlock.At) {
	outcome := "empty"
	if len(eff.Handed) > 0 {
		outcome = engine.Granted.String()
	}
	j := c.reply()
	j.str("outcome", outcome)
	j.openArray("tasks")
	for i := range eff.Handed {
		c.writeHanded(j, &eff.Handed[i])
	}
	j.closeArray()
	c.send(http.StatusOK, j, at)
}

// ack is POST /v1/leases/{id}/ack.
func (c *call) ack() {
	h, id, ok := c.ofLease()
	if !ok {
		return
	}
	cmd := &engine.Ack{Head: h, Lease: id}
	if !c.body(func(d *jsonIn) { decodeAck(d, cmd) }) {
		return
	}
	if eff, at, ok := c.do(cmd); ok {
		c.acknowledged(&eff, at)
	}
}

// nack is POST /v1/leases/{id}/nack.
func (c *call) nack() {
	h, id, ok := c.ofLease()
	if !ok {
		return
	}
	cmd := &engine.Nack{Head: h, Lease: id, Jitter: freshJitter()}
	if !c.body(func(d *jsonIn) { decodeNack(d, cmd) }) {
		return
	}
	if eff, at, ok := c.do(cmd); ok {
		c.sendTask(http.StatusOK, "nacked", &eff, at)
	}
}

// freshJitter is 64 random bits.
func freshJitter() uint64 {
	id := freshID()
	return binary.LittleEndian.Uint64(id[:8])
}

// askHuman is POST /v1/leases/{id}/ask.
func (c *call) askHuman() {
	h, id, ok := c.ofLease()
	if !ok {
		return
	}
	cmd := &engine.AskHuman{Head: h, Lease: id}
	if !c.body(func(d *jsonIn) { cmd.Question = d.question() }) {
		return
	}
	if eff, at, ok := c.do(cmd); ok {
		c.sendTask(http.StatusOK, interlock.TaskAsking.String(), &eff, at)
	}
}
