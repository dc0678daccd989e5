package store

import (
	"iter"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
)

// A claim of a key reaches the keys below it, so it needs what their patterns allow.

// reach returns the mode in which a claim holds the keys below its own, 0 for a claim
// that leaves them alone. A member gets parts, which are exclusive leases there.
func reach(mode interlock.Mode) interlock.Mode {
	switch mode {
	case interlock.Exclusive, interlock.Member:
		return interlock.Exclusive
	case interlock.Shared, interlock.SharedIntentExclusive:
		return interlock.Shared
	}
	return 0
}

// rulesBelow yields the patterns with rules that keys below a claimed key may have, with
// the mode in which the claim holds such keys.
func (s *Namespace) rulesBelow(c interlock.Claim) iter.Seq[rule] {
	return func(yield func(rule) bool) {
		mode := reach(c.Mode)
		if s == nil || mode == 0 {
			return
		}
		for _, p := range s.Patterns {
			if len(p.Allow) > 0 && p.shape.MayLieBelow(string(c.Key)) && !yield(rule{p, mode}) {
				return
			}
			if p.shape.CoversBelow(string(c.Key)) {
				return // keys there have this pattern, or one before it
			}
		}
	}
}

// Excludes returns why a principal may not claim so by the rules of the key's pattern, and
// of the patterns of the keys that the claim reaches; nil if it may.
func (s *Namespace) Excludes(c interlock.Claim, by *interlock.Principal) *Refusal {
	if no := s.PolicyAt(string(c.Key)).excludes(c, by); no != nil {
		return no
	}
	return s.ForbidsBelow(c, by)
}

// ForbidsBelow returns why a claim is not admitted under a pattern that keys below its
// own may have, nil for none.
func (s *Namespace) ForbidsBelow(c interlock.Claim, by *interlock.Principal) *Refusal {
	for x := range s.rulesBelow(c) {
		if !x.policy.allows(by, x.mode) {
			return &Refusal{
				Code: interlock.CodeModeForbidden, Key: c.Key,
				Message: message.New(
					message.ModeForbiddenBelow, message.Str(c.Key), message.Str(x.policy.Name), message.Sub(DisplayName(by)),
					message.Str(x.mode.String()),
				),
			}
		}
	}
	return nil
}
