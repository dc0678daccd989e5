package interlock_test

import (
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
)

// An id has one spelling.
func TestParseID(t *testing.T) {
	const good = "s_00112233445566778899aabbccddeeff"
	if id, err := interlock.ParseSessionID(good); err != nil || id.String() != good {
		t.Errorf("%s is read as %v, %v", good, id, err)
	}
	for _, bad := range []string{
		"", "s_", " " + good, good + " ", good + "0", good[:33], "S" + good[1:], "l" + good[1:], good[2:],
		"s_" + strings.ToUpper(good[2:]), good[:33] + "F", good[:33] + "g", good + "," + good, good[:32] + "é",
	} {
		if id, err := interlock.ParseSessionID(bad); err == nil || !id.IsZero() {
			t.Errorf("%q is read as %v, %v", bad, id, err)
		}
	}
}
