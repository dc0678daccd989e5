package lockmode

import "github.com/interlockdev/interlock"

// Set is a set of modes, one bit each.
type Set uint8

const count = 6 // modes are 1 to 5; index 0 is unused

// Counts has a number for each mode.
type Counts [count - 1]uint32

// Of returns the number for a mode.
func (c *Counts) Of(m interlock.Mode) *uint32 { return &c[m-1] }

// SetOf returns the set of some modes.
func SetOf(modes ...interlock.Mode) (s Set) {
	for _, m := range modes {
		s |= 1 << m
	}
	return s
}

// Has reports whether m is in the set.
func (s Set) Has(m interlock.Mode) bool { return s>>m&1 != 0 }

// The modes under the short names of the literature, from the weakest to the strongest.
const (
	IS  = interlock.IntentShared
	IX  = interlock.IntentExclusive
	S   = interlock.Shared
	SIX = interlock.SharedIntentExclusive
	X   = interlock.Exclusive
)

// Conflicts has for each mode the modes that it excludes in other hands: the
// complement of the table at interlock.Mode.
var Conflicts = [count]Set{
	IS:  SetOf(X),
	IX:  SetOf(S, SIX, X),
	S:   SetOf(IX, SIX, X),
	SIX: SetOf(IX, S, SIX, X),
	X:   SetOf(IS, IX, S, SIX, X),
}

// Writing has the modes that let a holder change the key or something below it.
var Writing = SetOf(IX, SIX, X)

// Join returns the weakest mode that is at least as strong as both.
func Join(a, b interlock.Mode) interlock.Mode {
	if a == b || Covers(a, b) {
		return a
	}
	if Covers(b, a) {
		return b
	}
	return SIX // the only two incomparable modes are shared and intent-exclusive
}

// Lock returns the mode of a claim towards other claims on the same key.
func Lock(m interlock.Mode) interlock.Mode {
	if m.Counts() {
		return IX
	}
	return m
}

// Covers reports whether holding a is as good as holding b, on the same key.
func Covers(a, b interlock.Mode) bool {
	switch a {
	case X:
		return true
	case SIX:
		return b != X
	case S, IX:
		return b == a || b == IS
	}
	return a == b
}

// Intent returns the mode that a claim needs on every ancestor of its key.
func Intent(m interlock.Mode) interlock.Mode {
	if Writing.Has(Lock(m)) {
		return IX
	}
	return IS
}

// Below returns the mode that a holder of m has on every descendant of the key; 0 for none.
func Below(m interlock.Mode) interlock.Mode {
	switch m {
	case X:
		return X
	case S, SIX:
		return S
	}
	return 0
}
