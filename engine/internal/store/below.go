package store

import (
	"iter"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/lockmode"
	"github.com/interlockdev/interlock/engine/message"
)

// A claim of a key reaches the keys below it, and holds their ancestors by intents, so it needs what the
// patterns of both allow.

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
			if len(p.Allow) > 0 && p.shape.MayLieBelow(string(c.Key)) && !yield(rule{policy: p, mode: mode}) {
				return
			}
			if p.shape.CoversBelow(string(c.Key)) {
				return // keys there have this pattern, or one before it
			}
		}
	}
}

// rulesAbove yields the patterns with rules that the ancestors of a claimed key have, with the intent in
// which the claim holds those: it stops others there, so it needs what their patterns allow.
func (s *Namespace) rulesAbove(c interlock.Claim) iter.Seq[rule] {
	return func(yield func(rule) bool) {
		if s == nil || s.guarded == 0 {
			return
		}
		mode := lockmode.Intent(c.Mode)
		for key, ok := keypath.Parent(string(c.Key)); ok; key, ok = keypath.Parent(key) {
			if p := s.PolicyAt(key); p != nil && len(p.Allow) > 0 && !yield(rule{policy: p, mode: mode, above: true}) {
				return
			}
		}
	}
}

// Excludes returns why a principal may not claim so by the rules of the key's pattern, and
// of the patterns of the keys that the claim reaches, or because the key is reserved; nil if it may.
func (s *Namespace) Excludes(c interlock.Claim, by *interlock.Principal) *Refusal {
	if no := ReservedKey(c.Key, by); no != nil {
		return no
	}
	if no := s.PolicyAt(string(c.Key)).excludes(c, by); no != nil {
		return no
	}
	return s.ForbidsAround(c, by)
}

// ForbidsAround returns why a claim is not admitted under a pattern that an ancestor of its key has, or that
// keys below may have; nil for none.
func (s *Namespace) ForbidsAround(c interlock.Claim, by *interlock.Principal) *Refusal {
	for x := range s.rulesAbove(c) {
		if !x.admits(by) {
			return around(message.ModeForbiddenAbove, x, c, by)
		}
	}
	for x := range s.rulesBelow(c) {
		if !x.admits(by) {
			return around(message.ModeForbiddenBelow, x, c, by)
		}
	}
	return nil
}

// around returns the refusal of a claim by a rule for other keys than its own.
func around(id message.ID, x rule, c interlock.Claim, by *interlock.Principal) *Refusal {
	return &Refusal{
		Code: interlock.CodeModeForbidden, Key: c.Key,
		Message: message.New(
			id, message.Str(c.Key), message.Str(x.policy.Name), message.Sub(DisplayName(by)), message.Str(x.mode.String()),
		),
	}
}
