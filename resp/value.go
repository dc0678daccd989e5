package resp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
)

// The value of a key is the purpose of its lease, as a quoted string behind a word that marks the door:
// redis "7f3a", or redis permanent "7f3a" for a key that was set without a ttl. So it is in the journal,
// survives a restart, and other agents read it where they read purposes. What another door writes there
// has no such form, unless its agent wants its lease to be one of this door.
const (
	mark          = "redis "
	permanentMark = mark + "permanent "
)

// purposeOf returns the purpose of a lease with a value.
func purposeOf(value string, permanent bool) (string, error) {
	p := mark
	if permanent {
		p = permanentMark
	}
	p += strconv.QuoteToASCII(value)
	if len(p) > interlock.MaxPurposeBytes {
		return "", &usageError{fmt.Sprintf(
			"the value is too long: a lock's value has at most %d plain characters, and binary ones count up to four times; "+
				"for documents use interlock state",
			interlock.MaxPurposeBytes-len(permanentMark)-2,
		)}
	}
	return p, nil
}

// valueOf returns the value in a purpose; ok is false for the purpose of another door.
func valueOf(purpose string) (value string, permanent, ok bool) {
	quoted, permanent := strings.CutPrefix(purpose, permanentMark)
	if !permanent {
		if quoted, ok = strings.CutPrefix(purpose, mark); !ok {
			return "", false, false
		}
	}
	value, err := strconv.Unquote(quoted)
	return value, permanent, err == nil && quoted[0] == '"'
}
