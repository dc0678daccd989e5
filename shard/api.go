package shard

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// Receiver is the type of engine.Head.From (or nil). Deliver is called when the effect is
// durable, from one goroutine at a time, in the order of the steps. It must not block and must
// not call the shard synchronously; it may keep a copy of *eff. With the first answer to a
// command the shard has done with the command, and its caller may use it again.
type Receiver interface {
	Deliver(eff *engine.Effect, at interlock.At)
}

// ReceiverFunc makes a function a Receiver.
type ReceiverFunc func(eff *engine.Effect, at interlock.At)

// Deliver calls f.
func (f ReceiverFunc) Deliver(eff *engine.Effect, at interlock.At) { f(eff, at) }
