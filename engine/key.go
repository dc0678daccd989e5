package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
)

// ParseKey checks that s is a key: valid UTF-8 in Unicode's normal form C, at
// most interlock.MaxKeyBytes bytes and interlock.MaxKeySegments segments, none
// of them empty, "." or "..", and without characters that a reader cannot see or
// tell apart: control, format and ignorable characters (which covers zero-width
// and bidirectional ones and variation selectors), spaces other than U+0020, and
// spaces at either end of a segment. The error is a
// *message.Error with CodeInvalidKey.
//
// Two spellings of one entity must not become two keys, so nothing is repaired
// here: a key that would need repair is refused.
func ParseKey(s string) (interlock.Key, error) { return keypath.Parse(s) }
