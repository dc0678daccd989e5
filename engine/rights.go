package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// claimable has the modes in the order of listing them to a principal that may not claim all.
var claimable = [...]interlock.Mode{
	interlock.Exclusive, interlock.SharedIntentExclusive, interlock.Shared, interlock.IntentExclusive,
	interlock.IntentShared,
	interlock.Permits, interlock.Barrier, interlock.Member,
}

// MayClaim returns the first mode in which a principal may claim a key by the allow lists of
// its pattern and of the patterns below it: Exclusive without such lists, 0 if there is none.
// problem is the reason why it is not Exclusive.
func (e *Engine) MayClaim(
	ns interlock.Namespace, key interlock.Key, by *interlock.Principal,
) (mode interlock.Mode, problem *message.Text) {
	s := e.turnTo(ns)
	if s == nil {
		return interlock.Exclusive, nil
	}
	for _, mode := range claimable {
		no := s.Excludes(interlock.Claim{Key: key, Mode: mode}, by)
		if no == nil {
			return mode, problem
		}
		if problem == nil {
			problem = no.Message
		}
	}
	return 0, problem
}

// mayTake refuses a command that would take up an offer that its principal may not hold.
func (e *Engine) mayTake(r *store.Request) bool {
	if r.Phase != store.Offered {
		return true
	}
	no := r.KeepsFrom(e.head.Principal)
	if no != nil {
		e.refuseFor(no)
	}
	return no == nil
}
