package server

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text that came from agents is made safe to show here and nowhere else: to a
// terminal, to a browser, and inside a prompt. Control characters become spaces
// (so that words do not run together), and what is invisible or changes the
// direction of reading goes away; no ANSI sequence survives that. Lengths were
// checked on the way in.

// cleanText is for one line: a purpose, a progress, a reason, a name. A line
// break is a control character too, so nothing that an agent writes can look
// like a line of ours. Both doors pass every such text through here on its way
// out.
func cleanText(s string) string { return clean(s, false) }

// cleanNote is for text that may have lines: it keeps '\n' and '\t'.
func cleanNote(s string) string { return clean(s, true) }

func clean(s string, lines bool) string {
	plain := true
	for i := range len(s) {
		if c := s[i]; (c < ' ' && !(lines && (c == '\n' || c == '\t'))) || c >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case lines && (r == '\n' || r == '\t'):
			return r
		case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
			return ' '
		case unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs):
			// Zero-width and bidirectional characters, tags, private use.
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}
