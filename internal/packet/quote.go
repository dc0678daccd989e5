package packet

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/interlockdev/interlock/internal/invisible"
)

// Text of others stands in a message in one of two forms. A name is quoted: it is on one line,
// in quotation marks, and has none within. Longer text is quoted line by line: each of its
// lines begins with quotePrefix, and no line of ours does. Characters that a reader would not
// see, or see elsewhere, are written as \u and four hexadecimal digits: control characters and
// with them all of ANSI, line separators other than \n, zero-width, bidirectional and tag
// characters, variation selectors, fillers, private use and unassigned ones. So text cannot
// escape from either form.

const quotePrefix = "| "

// name quotes text of one line.
func name(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"', r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		default:
			writeVisible(&b, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// quoted quotes text of several lines in at most limit bytes; where that is not
// enough, whole lines are left out at the end, or the end of the first.
func quoted(text string, limit int) (quote string, isCut bool) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = quotePrefix + visible(strings.TrimSuffix(line, "\n")) + "\n"
		if b.Len()+len(line) > limit {
			if b.Len() == 0 && limit > len(quotePrefix)+1 {
				line, _ = cut(line, limit-1)
				b.WriteString(line + "\n")
			}
			return b.String(), true
		}
		b.WriteString(line)
	}
	return b.String(), false
}

// visible writes one line of text so that all of it can be seen.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		writeVisible(&b, r)
	}
	return b.String()
}

func writeVisible(b *strings.Builder, r rune) {
	if r == '\t' || !invisible.Is(r) {
		b.WriteRune(r)
		return
	}
	if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
		writeEscape(b, r1)
		writeEscape(b, r2)
		return
	}
	writeEscape(b, r)
}

func writeEscape(b *strings.Builder, r rune) {
	const digits = "0123456789abcdef"
	b.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		b.WriteByte(digits[r>>shift&0xf])
	}
}
