package engine_test

import (
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
)

// forbiddenBelow reports whether a claim reaches keys below its own that a pattern does
// not let its principal claim.
func (m *model) forbiddenBelow(ns interlock.Namespace, by *interlock.Principal, c interlock.Claim) bool {
	mode := c.Mode
	switch c.Mode {
	case interlock.Member:
		mode = interlock.Exclusive
	case interlock.SharedIntentExclusive:
		mode = interlock.Shared
	case interlock.Exclusive, interlock.Shared:
	default:
		return false
	}
	for _, p := range m.patterns[ns] {
		hidden := slices.ContainsFunc(m.patterns[ns], func(o *interlock.Pattern) bool {
			return o != p && m.stricter(o, p) && hasAllBelow(o.Shape, c.Key)
		})
		if !hidden && !allowed(p, by, mode) && fitsBelow(p.Shape, c.Key) {
			return true
		}
	}
	return false
}

// forbiddenAbove reports whether a claim holds an ancestor of its key by an intent that no mode covers which
// the ancestor's pattern lets its principal claim.
func (m *model) forbiddenAbove(ns interlock.Namespace, by *interlock.Principal, c interlock.Claim) bool {
	covers := []interlock.Mode{
		interlock.IntentExclusive, interlock.SharedIntentExclusive, interlock.Exclusive, interlock.Permits,
		interlock.Barrier, interlock.Member,
	}
	if c.Mode == interlock.Shared || c.Mode == interlock.IntentShared {
		covers = append(covers, interlock.Shared, interlock.IntentShared)
	}
	for i, b := range []byte(c.Key) {
		if b != '/' {
			continue
		}
		p := m.pattern(ns, c.Key[:i])
		if p != nil && !slices.ContainsFunc(covers, func(mode interlock.Mode) bool { return allowed(p, by, mode) }) {
			return true
		}
	}
	return false
}

// stricter reports whether the pattern a counts before b.
func (m *model) stricter(a, b *interlock.Pattern) bool {
	if x, y := specific(a), specific(b); x != y {
		return x > y
	}
	return a.Name < b.Name
}

// hasAllBelow reports whether a shape fits a key and all below it, as they are spelled.
func hasAllBelow(shape string, key interlock.Key) bool {
	text, ok := spelled(shape, shape, string(key))
	return ok && text == string(key) && strings.HasSuffix(shape, "...}")
}

// fitsBelow reports whether a shape fits keys below a key: segment by segment it fits the key,
// and continues.
func fitsBelow(shape string, key interlock.Key) bool {
	segments := strings.Split(shape, "/")
	for i, s := range strings.Split(string(key), "/") {
		if i >= len(segments) {
			return false
		}
		if strings.HasSuffix(segments[i], "...}") {
			return true
		}
		if text, ok := spelled(segments[i], segments[i], s); !ok || text != s {
			return false
		}
	}
	return len(segments) > strings.Count(string(key), "/")+1
}
