package engine

import "github.com/interlockdev/interlock"

// modeSet is a set of modes, one bit each.
type modeSet uint8

const modeCount = 6 // modes are 1 to 5; index 0 is unused

// modeCounts has a number for each mode.
type modeCounts [modeCount - 1]uint32

func (c *modeCounts) of(m interlock.Mode) *uint32 { return &c[m-1] }

func setOf(modes ...interlock.Mode) (s modeSet) {
	for _, m := range modes {
		s |= 1 << m
	}
	return s
}

func (s modeSet) has(m interlock.Mode) bool { return s>>m&1 != 0 }

const (
	is  = interlock.IntentShared
	ix  = interlock.IntentExclusive
	sh  = interlock.Shared
	six = interlock.SharedIntentExclusive
	ex  = interlock.Exclusive
)

// conflicts lists for each mode the modes that it excludes in other hands: the
// complement of the table at interlock.Mode.
var conflicts = [modeCount]modeSet{
	is:  setOf(ex),
	ix:  setOf(sh, six, ex),
	sh:  setOf(ix, six, ex),
	six: setOf(ix, sh, six, ex),
	ex:  setOf(is, ix, sh, six, ex),
}

// writing are the modes whose holder may change the key or something below it.
var writing = setOf(ix, six, ex)

// lub gives the weakest mode that is at least as strong as both.
func lub(a, b interlock.Mode) interlock.Mode {
	if a == b || covers(a, b) {
		return a
	}
	if covers(b, a) {
		return b
	}
	return six // the only two incomparable modes are shared and intent-exclusive
}

// lockOf is what a claim's mode is towards other claims on the same key.
func lockOf(m interlock.Mode) interlock.Mode {
	if m.Counts() {
		return ix
	}
	return m
}

// covers reports whether holding a is as good as holding b, on the same key.
func covers(a, b interlock.Mode) bool {
	switch a {
	case ex:
		return true
	case six:
		return b != ex
	case sh, ix:
		return b == a || b == is
	}
	return a == b
}

// intent is the mode that a claim needs on every ancestor of its key.
func intent(m interlock.Mode) interlock.Mode {
	if writing.has(lockOf(m)) {
		return ix
	}
	return is
}

// below is what holding a mode gives on every descendant of the key; 0 for
// nothing.
func below(m interlock.Mode) interlock.Mode {
	switch m {
	case ex:
		return ex
	case sh, six:
		return sh
	}
	return 0
}
