package resp

import (
	"strings"
	"testing"
)

// TestForms: the door answers SET, GET and the scripts as Redis does.
func TestForms(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		inBubble(t, Config{}, func(r *rig) {
			for _, client := range []string{"a", "b"} {
				r.do(client, "HELLO", version)
			}
			for _, step := range conversation(t, "forms.txt") {
				words := strings.Fields(step[1])
				for i, word := range words {
					if name, is := strings.CutPrefix(word, "@"); is {
						words[i] = kindText(t, name)
					}
				}
				if got := r.do(step[0], words...); got != step[2] {
					t.Errorf("version %s: %s> %s\n%s\nwant %s", version, step[0], step[1], got, step[2])
				}
			}
		})
	}
}
