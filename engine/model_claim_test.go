package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
)

// Conflicts between claims, stated without intents: by reads and writes.

// above reports whether a is a proper ancestor of b.
func above(a, b interlock.Key) bool { return strings.HasPrefix(string(b), string(a)+"/") }

// plain is how a mode counts towards other claims: those with a count are like an
// intent to write.
func plain(m interlock.Mode) interlock.Mode {
	if m.Counts() {
		return interlock.IntentExclusive
	}
	return m
}

// modeClash is the standard matrix for one and the same key.
func modeClash(a, b interlock.Mode) bool {
	const (
		IS, IX, S, SIX, X = interlock.IntentShared, interlock.IntentExclusive, interlock.Shared, interlock.SharedIntentExclusive, interlock.Exclusive
	)
	compatible := map[[2]interlock.Mode]bool{
		{IS, IS}: true, {IS, IX}: true, {IS, S}: true, {IS, SIX}: true,
		{IX, IS}: true, {IX, IX}: true,
		{S, IS}: true, {S, S}: true,
		{SIX, IS}: true,
	}
	return !compatible[[2]interlock.Mode{plain(a), plain(b)}]
}

func writesBelow(m interlock.Mode) bool {
	m = plain(m)
	return m == interlock.IntentExclusive || m == interlock.SharedIntentExclusive || m == interlock.Exclusive
}

// clash reports whether two claims of different flows may not be held at once.
func clash(a, b interlock.Claim) bool {
	if above(b.Key, a.Key) {
		a, b = b, a
	}
	switch {
	case a.Key == b.Key:
		return modeClash(a.Mode, b.Mode)
	case !above(a.Key, b.Key):
		return false
	case a.Mode == interlock.Exclusive:
		return true // it changes everything below
	case a.Mode == interlock.Shared || a.Mode == interlock.SharedIntentExclusive:
		return writesBelow(b.Mode) // it reads everything below
	}
	return false // an intent claims nothing below by itself
}

// conflict reports whether two requests exclude each other.
func conflict(a, b *request) bool {
	if a.ns != b.ns || a.party() == b.party() {
		return false
	}
	return anyClash(a.wants(), b.wants())
}

func anyClash(a, b []interlock.Claim) bool {
	for _, x := range a {
		for _, y := range b {
			if clash(x, y) {
				return true
			}
		}
	}
	return false
}

// coversMode reports whether a is as good as b at the same key.
func coversMode(a, b interlock.Mode) bool {
	switch a {
	case interlock.Exclusive:
		return true
	case interlock.SharedIntentExclusive:
		return b != interlock.Exclusive
	case interlock.Shared, interlock.IntentExclusive:
		return b == a || b == interlock.IntentShared
	}
	return b == a
}

// covers reports whether a holder of a does not need b.
func covers(a, b interlock.Claim) bool {
	if a.Mode.Counts() || b.Mode.Counts() {
		return a.Key == b.Key && a.Mode == b.Mode && (a.Count == b.Count || a.Mode == interlock.Permits && a.Count > b.Count)
	}
	if a.Key == b.Key {
		return coversMode(a.Mode, b.Mode)
	}
	if !above(a.Key, b.Key) {
		return false
	}
	reads := b.Mode == interlock.Shared || b.Mode == interlock.IntentShared
	return a.Mode == interlock.Exclusive ||
		reads && (a.Mode == interlock.Shared || a.Mode == interlock.SharedIntentExclusive)
}

func coversAll(a, b []interlock.Claim) bool {
	for _, want := range b {
		if !slices.ContainsFunc(a, func(have interlock.Claim) bool { return covers(have, want) }) {
			return false
		}
	}
	return true
}

func claimsText(claims []interlock.Claim) string {
	short := map[interlock.Mode]string{
		interlock.IntentShared: "(IS)", interlock.IntentExclusive: "(IX)", interlock.Shared: "(S)",
		interlock.SharedIntentExclusive: "(SIX)",
	}
	var parts []string
	for _, c := range claims {
		key := string(c.Key)
		if quoted := strconv.Quote(key); quoted != `"`+key+`"` {
			key = quoted
		}
		mode := short[c.Mode]
		if c.Mode.Counts() {
			mode = fmt.Sprintf("(%v %d)", c.Mode, c.Count)
		}
		if c.Mode == interlock.Barrier && c.Count == 0 { // in a cycle or an edge
			mode = fmt.Sprintf("(%v)", c.Mode)
		}
		parts = append(parts, key+mode)
	}
	return strings.Join(parts, ",")
}
