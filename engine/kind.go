package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
)

// The kind of a key is its first segment up to the colon: report of report:2026/q1. A new
// kind that is one slip away from another one (reprot) is most likely that one misspelt.
// Where a namespace asks for warnings (Settings.NearMisses), it counts the kinds of its
// live keys.

// mostKinds bounds the kinds that a namespace counts, and so what one claim is compared
// with: a slip is looked for among these and as many patterns. Kinds beyond are not
// counted, and a slip in them is not seen.
const mostKinds = 256

// shortestKind is of how many letters a kind is at least that is compared: in shorter
// ones, as in gpu and cpu, one letter is the difference between two things.
const shortestKind = 4

// kinds has, for each kind, how many live keys and documents each first segment has.
type kinds struct{ of map[string]map[string]int }

func firstSegment(key string) string {
	head, _, _ := strings.Cut(key, "/")
	return head
}

func kindOf(key string) string {
	kind, _, _ := strings.Cut(firstSegment(key), ":")
	return strings.ToLower(kind)
}

// note takes in that a key is live, or no longer.
func (k *kinds) note(key string, live bool) {
	kind, head := kindOf(key), firstSegment(key)
	heads := k.of[kind]
	switch {
	case live && heads == nil && len(k.of) >= mostKinds:
	case live:
		if heads == nil {
			if k.of == nil {
				k.of = map[string]map[string]int{}
			}
			heads = map[string]int{}
			k.of[kind] = heads
		}
		heads[head]++
	case heads[head] > 1:
		heads[head]--
	case heads != nil:
		if delete(heads, head); len(heads) == 0 {
			delete(k.of, kind)
		}
	}
}

// slip warns of a key without a pattern, the only one of its kind, whose kind is one slip
// away from that of other keys or of a pattern; "" if it is not.
func (s *space) slip(key interlock.Key) string {
	kind := kindOf(string(key))
	if len(kind) < shortestKind {
		return ""
	}
	if heads := s.kinds.of[kind]; len(heads) > 1 || len(heads) == 1 && heads[firstSegment(string(key))] == 0 {
		return ""
	}
	if s.policyAt(string(key)) != nil {
		return ""
	}
	var meant []string
	for _, other := range slices.Sorted(maps.Keys(s.kinds.of)) {
		if isSlip(kind, other) {
			meant = append(meant, other)
		}
	}
	for _, p := range s.patterns[:min(len(s.patterns), mostKinds)] {
		if len(p.shape.parts) > 0 {
			if other, colon := strings.CutSuffix(p.shape.parts[0].text, ":"); colon && isSlip(kind, strings.ToLower(other)) {
				meant = append(meant, other)
			}
		}
	}
	if len(meant) == 0 {
		return ""
	}
	return fmt.Sprintf(
		"key %s is the only one that begins with %s, and others begin with %s: if that is a slip, release it and use the other spelling, since this key excludes nobody there",
		key, kind, slices.Min(meant),
	)
}

// isSlip reports whether one slip makes b of a: a letter too many, one that is missing,
// another letter, or two neighbours that have changed places. Numbers are no slips: web1
// and web2 are two things.
func isSlip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || len(a) < shortestKind-1 || a == b {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	rest, other := a[i:], b[i:]
	switch {
	case len(a) < len(b):
		return rest == other[1:] && !isDigit(other[0])
	case isDigit(rest[0]) || isDigit(other[0]):
		return false
	case rest[1:] == other[1:]:
		return true
	}
	return len(rest) > 1 && rest[0] == other[1] && rest[1] == other[0] && rest[2:] == other[2:] && !isDigit(rest[1])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
