package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// Workers' calls: they pull tasks, and report the outcomes.

// pullTasks is POST /v1/queues/{queue}/pull. Tasks handed to a caller that had hung up are returned
// at once; tasks lost on the way to one are returned when their leases end. But the leases of a
// session live as long as it does, so with one an Idempotency-Key returns the same tasks again.
func (c *call) pullTasks() {
	name, ok := c.pathName()
	if !ok {
		return
	}
	if no := refusal(c.identity.Principal, mayWork, name); no != nil {
		c.fail(no)
		return
	}
	h, ok := c.mutating()
	if !ok {
		return
	}
	key := h.RequestID
	h.RequestID = ""
	cmd := &engine.Pull{Head: h, Queue: name}
	var wait time.Duration
	if !c.body(func(d *jsonIn) { wait = decodePull(d, cmd) }) {
		return
	}
	cmd.ID, cmd.Leases = pullIDs(cmd.Session, name, key, cmd.Max)
	cmd.Attach = wait > 0
	idle := *cmd // the engine owns the command once it is submitted
	last, ok := c.listen(cmd, &cmd.Head, wait, func(*engine.Effect) *longPoll {
		if !idle.Attach {
			return nil
		}
		return idleAs(idle)
	})
	if c.r.Context().Err() != nil && (h.Session.IsZero() || key == "") { // no caller can ask for the same once more
		c.putBack(h, last.eff.Handed)
	}
	if ok {
		if last.eff.Outcome == engine.Refused {
			c.refused(&last.eff, last.at)
			return
		}
		if idle.Attach && len(last.eff.Handed) == 0 && c.s.isDraining() {
			c.refuse(
				interlock.CodeShuttingDown, "the server is shutting down, and no task was dispatched: try again in a moment",
			)
			return
		}
		c.handedOut(&last.eff, last.at)
	}
}

// pullIDs returns the ids of a pull and of the leases that it may grant: random ones, or for a
// session's pull from a queue under a key the same each time. They cannot be guessed without the
// session's id.
func pullIDs(session interlock.SessionID, queue, key string, leases int) (id [16]byte, ids [][16]byte) {
	ids = make([][16]byte, leases+1)
	for i := range ids {
		if session.IsZero() || key == "" {
			ids[i] = freshID()
			continue
		}
		mac := hmac.New(sha256.New, session[:])
		fmt.Fprintf(mac, "pull %d %q %s", i, queue, key)
		copy(ids[i][:], mac.Sum(nil))
	}
	return ids[0], ids[1:]
}

// idleAs waits for a task. A worker that leaves is idle no more, so that nothing is handed to an
// absent one.
func idleAs(pull engine.Pull) *longPoll {
	ask := func(h engine.Head, attach bool) engine.Command {
		p := pull
		p.Head, p.Attach = h, attach
		return &p
	}
	return &longPoll{
		open:  func(eff *engine.Effect) bool { return eff.Outcome == engine.Queued },
		again: func(h engine.Head) engine.Command { return ask(h, true) },
		last:  func(h engine.Head) engine.Command { return ask(h, false) },
		leave: func(h engine.Head) engine.Command { return &engine.Leave{Head: h, Ticket: pull.ID} },

		crossing: true,
	}
}

// putBack returns tasks that were handed to a caller that had hung up.
func (c *call) putBack(h engine.Head, list []engine.Assignment) {
	for i := range list {
		c.s.insist(&engine.Nack{Head: h, Lease: list[i].Lease.ID, Unseen: true})
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

// ackTask is POST /v1/leases/{id}/ack.
func (c *call) ackTask() {
	h, id, ok := c.ofLease()
	if !ok {
		return
	}
	cmd := &engine.Ack{Head: h, Lease: id}
	if !c.body(func(d *jsonIn) { d.ackRequest(cmd) }) {
		return
	}
	for i := range cmd.Tasks {
		cmd.Tasks[i].Trace = c.traceparent()
	}
	if eff, at, ok := c.do(cmd); ok {
		c.acknowledged(&eff, at)
	}
}

// nackTask is POST /v1/leases/{id}/nack.
func (c *call) nackTask() {
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

// requestApproval is POST /v1/leases/{id}/ask.
func (c *call) requestApproval() {
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
