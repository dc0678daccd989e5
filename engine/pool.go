package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// refuseUnservable refuses a request that can never be granted because its own flow has the
// permits, and reports whether it did.
func (e *Engine) refuseUnservable(r *store.Request) bool {
	var lacking *store.Need
	for way := range r.EachAlternative {
		if lacking = way.Lacking(); lacking == nil {
			return false
		}
	}
	if lacking == nil {
		return false
	}
	own, most := lacking.Req.KeptAt(lacking.Node).Used(), uint64(lacking.Node.Pool().Policy.MostHeld(r.Group))
	left := most - min(most, own)
	advice := message.New(message.GiveBackOrAskFor, message.Num(left))
	if left == 0 {
		advice = message.New(message.GiveBackFirst)
	}
	e.refuse(
		interlock.CodeTooManyPermits,
		message.New(
			message.PermitsNeverFree, message.Num(own), message.Str(lacking.Node.Key), message.Num(most),
			message.Num(lacking.Req.CountOf(lacking)), message.Sub(advice),
		),
	)
	return true
}
