package invisible

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// brailleBlank is a character that is drawn as nothing.
	brailleBlank = '\u2800'

	// EmojiStyle is a variation selector that has a reader see another picture of the
	// character before it. It is part of common text, so it counts as visible; where two
	// spellings of one text must not exist, refuse it.
	EmojiStyle = '\ufe0f'
)

// Is reports whether a reader cannot see r, or r changes how the text around it reads: a
// control or format character, among them those of bidirectional text, a line or paragraph
// separator, a private or surrogate code point, a variation selector but EmojiStyle, any other
// default-ignorable character, and the blank Braille pattern. Spaces are visible. So are
// unassigned code points that Unicode does not reserve to be ignored: a later version may
// assign a picture to them, and fonts draw a box.
//
// Source: Unicode 15, general categories, and properties Default_Ignorable_Code_Point and
// Variation_Selector.
func Is(r rune) bool {
	if r < unicode.MaxASCII {
		return r < ' '
	}
	return r == brailleBlank || r != EmojiStyle && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp,
		unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Line returns s as one line that is safe for a terminal, a browser and a prompt. Control
// characters and separators become spaces, so that words do not run together and no text
// can pretend to be a line of ours. Other invisible characters are removed, and bytes that
// are not UTF-8 become U+FFFD. No ANSI sequence survives.
func Line(s string) string { return clean(s, false) }

// Lines is Line for text that may have lines: it keeps '\n' and '\t'.
func Lines(s string) string { return clean(s, true) }

// Clip returns s cut to n bytes, with a mark at the cut.
func Clip(s string, n int) string {
	const mark = "…"
	if len(s) <= n {
		return s
	}
	n = max(n-len(mark), 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}

func clean(s string, lines bool) string {
	kept := func(r rune) bool { return !Is(r) || lines && (r == '\n' || r == '\t') }
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] < unicode.MaxASCII && kept(rune(s[i]))
	}
	if plain {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case kept(r):
			return r
		case unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp):
			return ' '
		}
		return -1
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}
