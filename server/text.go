package server

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cleanText makes text that came from an agent safe to show: to a terminal, to a
// browser, and inside a prompt. Control characters become spaces (so words do not
// run together), and what is invisible or changes the direction of reading goes
// away, with it every ANSI sequence's beginning. Line breaks are control
// characters too: nothing that an agent writes can look like a line of ours.
//
// Both doors pass every purpose, note, progress, reason, agent's and flow's name
// through here on its way out; the lengths were checked on the way in.
func cleanText(s string) string {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	return strings.Map(cleanRune, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

func cleanRune(r rune) rune {
	switch {
	case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
		return ' '
	case unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs):
		// Zero-width and bidirectional characters, tags, private use.
		return -1
	}
	return r
}
