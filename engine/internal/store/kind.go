package store

import (
	"maps"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/message"
)

// The kind of a key is its first segment up to the colon: report of report:2026/q1. A new
// kind that is one slip away from another one (reprot) is most likely that one misspelt.
// Where a namespace asks for warnings (Settings.NearMisses), it counts the kinds of its
// live keys.

// mostKinds bounds the kinds that a namespace counts, and so what one claim is compared
// with: a slip is looked for among these and as many patterns. Kinds beyond are not
// counted, and a slip in them is not seen.
const mostKinds = 256

// kinds has, for each kind, how many live keys and documents each first segment has.
type kinds struct{ of map[string]map[string]int }

// note takes in that a key is live, or no longer.
func (k *kinds) note(key string, live bool) {
	kind, head := keypath.Kind(key), keypath.First(key)
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

// slip warns of a key without a pattern, the only one of its kind, if its kind differs by one
// typing error from that of other keys or of a pattern; otherwise it returns "".
func (s *Namespace) slip(key interlock.Key) *message.Text {
	kind := keypath.Kind(string(key))
	if len(kind) < keypath.ShortestKind {
		return nil
	}
	if heads := s.kinds.of[kind]; len(heads) > 1 || len(heads) == 1 && heads[keypath.First(string(key))] == 0 {
		return nil
	}
	if s.PolicyAt(string(key)) != nil {
		return nil
	}
	var meant []string
	for _, other := range slices.Sorted(maps.Keys(s.kinds.of)) {
		if keypath.IsSlip(kind, other) {
			meant = append(meant, other)
		}
	}
	for _, p := range s.Patterns[:min(len(s.Patterns), mostKinds)] {
		if other, colon := strings.CutSuffix(p.shape.Prefix(), ":"); colon && keypath.IsSlip(kind, strings.ToLower(other)) {
			meant = append(meant, other)
		}
	}
	if len(meant) == 0 {
		return nil
	}
	return message.New(message.KindAlmostSpelled, message.Str(key), message.Str(kind), message.Str(slices.Min(meant)))
}
