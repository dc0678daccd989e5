package history

import (
	"strings"

	"github.com/interlockdev/interlock"
)

// The modes that each mode allows beside it, stated independently of the engine.

// beside lists, for each mode, those that others may have on the same key.
var beside = map[interlock.Mode][]interlock.Mode{
	interlock.IntentShared: {
		interlock.IntentShared, interlock.IntentExclusive, interlock.Shared, interlock.SharedIntentExclusive,
	},
	interlock.IntentExclusive:       {interlock.IntentShared, interlock.IntentExclusive},
	interlock.Shared:                {interlock.IntentShared, interlock.Shared},
	interlock.SharedIntentExclusive: {interlock.IntentShared},
}

// conflict reports whether two leases must not be alive together.
func conflict(a, b []Claim) bool {
	for _, x := range a {
		for _, y := range b {
			if collide(x, y) {
				return true
			}
		}
	}
	return false
}

func collide(x, y Claim) bool {
	switch {
	case x.Key == y.Key:
	case strings.HasPrefix(y.Key, x.Key+"/"):
		y.Mode = intent(y.Mode)
	case strings.HasPrefix(x.Key, y.Key+"/"):
		x.Mode = intent(x.Mode)
	default:
		return false
	}
	for _, m := range beside[x.Mode] {
		if m == y.Mode {
			return false
		}
	}
	return true
}

// intent returns the intent of a claim on the keys above its own.
func intent(m interlock.Mode) interlock.Mode {
	switch m {
	case interlock.Shared, interlock.IntentShared:
		return interlock.IntentShared
	}
	return interlock.IntentExclusive
}
