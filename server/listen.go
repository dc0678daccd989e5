package server

import (
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// A call that waits for a second answer of the shard: what is common to waits in line, to workers
// that ask for tasks, and to waiters for a task's end.

// longPoll is how one kind of command is waited for. The commands that its functions make
// are filled in with the head that they are given.
type longPoll struct {
	// open reports whether after this answer another one follows.
	open func(*engine.Effect) bool
	// again makes the shard answer this call once more, after it forgot its listeners.
	again func(engine.Head) engine.Command
	// last asks, when the time is up, how it stands. From then on the call does not listen.
	last func(engine.Head) engine.Command
	// forget, where last does not do so, reports to the shard that the call listens no more.
	forget func(engine.Head) engine.Command
	// leave reports that the call listens no more: the caller hung up.
	leave func(engine.Head) engine.Command
	// crossing makes the call wait for the answer to an earlier request to leave.
	crossing bool
}

// listen carries out a command that may be answered twice, and waits within the call
// for the second answer. It ends in one of these ways:
//
//	answered            so it is over, or was refused
//	time is up          with the answer to vigil.last
//	the caller leaves   vigil.leave is carried out, and ok is false; with vigil.crossing,
//	                    last is the caller's previous answer
//	its credential is   the same, and the caller gets the refusal
//	taken back
//	the server drains   as if the time were up
//
// ok is false when there is nothing left to tell. h is a field of cmd; how is called
// with the first answer, if it leaves something to wait for.
func (c *call) listen(
	cmd engine.Command, h *engine.Head, wait time.Duration, how func(first *engine.Effect) *longPoll,
) (last answer, ok bool) {
	in := make(inbox, inboxSize)
	reset := c.s.resets.next()
	h.From, h.Link = in, c.s.nextLink()
	base := engine.Head{
		Namespace: h.Namespace, Session: h.Session, Actor: h.Actor, Principal: h.Principal, From: in, Link: h.Link,
	}
	// The engine owns the command once it is submitted.
	if err := c.s.shard.Submit(cmd); err != nil {
		c.failWith(err)
		return last, false
	}
	if last, ok = c.next(in); !ok { // the first answer comes at once, whatever it is
		return last, false
	}
	c.s.obs.Answered(cmd, &last.eff)
	c.replayed(&last.eff)
	v := how(&last.eff)
	if v == nil || !v.open(&last.eff) {
		return last, true
	}
	ask := func(cmd engine.Command) bool {
		if err := c.s.shard.Submit(cmd); err != nil {
			c.failWith(err)
			return false
		}
		return true
	}

	c.allow(wait)
	ctx, stop := c.s.whileKnown(c.r.Context(), c.identity)
	defer stop()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	// The session of a call that waits lives, whatever its ttl: the call renews it.
	beats, beat := make(inbox, 1), time.NewTimer(0)
	defer beat.Stop()
	asked := 0 // answers under way that leave it open
	over := func() bool {
		if v.open(&last.eff) {
			asked--
			return false
		}
		return true
	}
	for waiting := true; waiting; {
		select {
		case last = <-in:
			if over() {
				return last, true
			}
		case <-reset:
			// The engine was rebuilt and forgot that this call listens. Its earlier answers are
			// there already.
			reset = c.s.resets.next()
			for len(in) > 0 {
				if last = <-in; over() {
					return last, true
				}
			}
			if !ask(v.again(base)) {
				return last, false
			}
			asked++
		case <-beat.C:
			alive := base
			alive.From = beats
			if !ask(&engine.KeepAlive{Head: alive, Ticket: last.eff.Ticket.ID}) {
				return last, false
			}
		case renewed := <-beats:
			if ttl := renewed.eff.Session.TTL; ttl > 0 {
				beat.Reset(ttl / 3)
			}
		case <-timer.C:
			waiting = false
		case <-c.s.shard.Failed():
			c.failed()
			return last, false
		case <-c.s.Draining():
			waiting = false
		case <-ctx.Done():
			if refusal := takenBack(ctx); refusal != nil {
				c.fail(refusal)
			} else {
				c.status = statusClientGone
			}
			base.From = nil
			if !v.crossing {
				c.s.insist(v.leave(base))
				return last, false
			}
			left := make(inbox, 1)
			base.From = left
			if c.s.insist(v.leave(base)) {
				_, _ = c.next(left)
			}
			for len(in) > 0 && v.open(&last.eff) {
				last = <-in
			}
			return last, false
		}
	}
	// The call does not listen from here on. Effects of the meantime come first.
	if !ask(v.last(base)) {
		return last, false
	}
	if v.forget != nil {
		silent := base
		silent.From = nil
		c.s.insist(v.forget(silent))
	}
	for last, ok = c.next(in); ok && asked > 0 && !over(); {
		last, ok = c.next(in)
	}
	return last, ok
}

// inbox receives the answers of one call that waits.
type inbox chan answer

type answer struct {
	eff engine.Effect
	at  interlock.At
}

// inboxSize is more than a call can get: the first answer, the end of the wait, and one for each
// time that it asks again, one at a time.
const inboxSize = 16

// Deliver implements shard.Receiver: it never blocks.
func (in inbox) Deliver(eff *engine.Effect, at interlock.At) {
	select {
	case in <- answer{*eff, at}:
	default:
	}
}

// next takes the answer that is under way. ok is false when the shard ended before
// it gave one; the call is answered then.
func (c *call) next(in inbox) (a answer, ok bool) {
	select {
	case a = <-in:
		return a, true
	case <-c.s.shard.Failed():
	}
	select {
	case a = <-in:
		return a, true
	default:
		c.refuse(
			interlock.CodeOutcomeUnknown,
			"the server lost its journal before it could answer: repeat the request with the same request id",
		)
		return a, false
	}
}

// allow lifts the connection's deadlines for a call that takes its time.
func (c *call) allow(d time.Duration) {
	rc := http.NewResponseController(c.w)
	// A recorder in a test has no deadlines.
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Now().Add(d + writeTimeout))
}
