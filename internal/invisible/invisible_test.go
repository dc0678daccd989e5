package invisible

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// ignorable are the characters with the property Default_Ignorable_Code_Point of
// DerivedCoreProperties.txt, Unicode 15, as first and last of each range.
var ignorable = [][2]rune{
	{0x00ad, 0x00ad},
	{0x034f, 0x034f},
	{0x061c, 0x061c},
	{0x115f, 0x1160},
	{0x17b4, 0x17b5},
	{0x180b, 0x180f},
	{0x200b, 0x200f},
	{0x202a, 0x202e},
	{0x2060, 0x206f},
	{0x3164, 0x3164},
	{0xfe00, 0xfe0e},
	{0xfeff, 0xfeff},
	{0xffa0, 0xffa0},
	{0xfff0, 0xfff8},
	{0x1bca0, 0x1bca3},
	{0x1d173, 0x1d17a},
	{0xe0000, 0xe0fff},
}

// Every character that Unicode ignores by default, that controls or formats text, or that
// is drawn as nothing is invisible. All others are visible.
func TestIs(t *testing.T) {
	hidden := map[rune]bool{'\u2800': true, '\u2028': true, '\u2029': true}
	for _, span := range ignorable {
		for r := span[0]; r <= span[1]; r++ {
			hidden[r] = true
		}
	}
	for r := range rune(unicode.MaxRune + 1) {
		want := hidden[r] || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) ||
			r >= 0xd800 && r < 0xe000
		if got := Is(r); got != want {
			t.Errorf("%U: %v, want %v", r, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	for _, c := range []struct{ in, line, lines string }{
		{"plain text", "plain text", "plain text"},
		{"one\ntwo\tthree", "one two three", "one\ntwo\tthree"},
		{"\x1b[31mred\x7f", " [31mred ", " [31mred "},
		{"a\u2028b\u2029c", "a b c", "a b c"},
		{"zero\u200bwidth\u202edrawkcab\ufeff", "zerowidthdrawkcab", "zerowidthdrawkcab"},
		{"❤\ufe0f\ufe0e\U000e0101\u3164\u034f\u2800.", "❤\ufe0f.", "❤\ufe0f."},
		{"bad\xffbyte", "bad\ufffdbyte", "bad\ufffdbyte"},
	} {
		if got := Line(c.in); got != c.line {
			t.Errorf("Line(%q) is %q, want %q", c.in, got, c.line)
		}
		if got := Lines(c.in); got != c.lines {
			t.Errorf("Lines(%q) is %q, want %q", c.in, got, c.lines)
		}
	}
}

// A cut text fits, is UTF-8, and ends with the mark.
func TestClip(t *testing.T) {
	const text = "aü€😀 end"
	for n := range len(text) + 2 {
		got := Clip(text, n)
		switch {
		case n >= len(text):
			if got != text {
				t.Errorf("%d bytes: %q is cut", n, got)
			}
		case len(got) > max(n, len("…")) || !utf8.ValidString(got) || !strings.HasSuffix(got, "…"):
			t.Errorf("%d bytes: %q", n, got)
		case !strings.HasPrefix(text, strings.TrimSuffix(got, "…")):
			t.Errorf("%d bytes: %q is no beginning", n, got)
		}
	}
}
