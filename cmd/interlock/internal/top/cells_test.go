package top

import (
	"io"
	"slices"
	"strings"
	"testing"
)

func TestCells(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "abc": 3, "é": 1, "e\u0301": 1, "請求係": 6, "ｆｕｌｌ": 8, "🚀": 2, "…": 1, "─": 1, "가": 2, "\u1100\u1161": 2,
		"…⚠": 2,
	} {
		if got := cells(s); got != want {
			t.Errorf("%q takes %d cells, want %d", s, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"請求係", 6, "請求係"},
		{"請求係", 5, "請求…"},
		{"請求係", 4, "請…"},
		{"請求係", 2, "…"},
		{"請求係", 1, "…"},
		{"請求係", 0, ""},
		{"e\u0301te\u0301s", 3, "e\u0301t…"},
	} {
		if got := cut(c.s, c.most); got != c.want || cells(got) > c.most {
			t.Errorf("%q in %d cells is %q, want %q", c.s, c.most, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want []string
	}{
		{"", 5, nil},
		{"one two three", 7, []string{"one two", "three"}},
		{"abcdefgh ij", 3, []string{"abc", "def", "gh", "ij"}},
		{"請求 係請求係", 5, []string{"請求", "係請", "求係"}},
		{"請", 1, []string{"請"}},
	} {
		if got := wrap(c.s, c.most); !slices.Equal(got, c.want) {
			t.Errorf("%q at %d is %q, want %q", c.s, c.most, got, c.want)
		}
	}
}

func TestKeysOf(t *testing.T) {
	for _, c := range []struct{ typed, keys, rest string }{
		{"jk", "j k", ""},
		{"\x1b[A\x1b[B\x1bOA", "up down up", ""},
		{"\x1b", "escape", ""},
		{"\x1b[6~\x1b[H\x1b[F", "page down home end", ""},
		{"\x1b[200~x", "x", ""},
		{"\x1b[1;5Cy", "y", ""},
		{"\r\x7f\x03\x15", "enter backspace ctrl-c ctrl-u", ""},
		{"é請", "é 請", ""},
		{"a\xe8\xab", "a", "\xe8\xab"},
		{"\x00\x1a\xff", "", ""},
	} {
		keys, rest := keysOf([]byte(c.typed))
		if strings.Join(keys, " ") != c.keys || string(rest) != c.rest {
			t.Errorf("%q is %q and %q left", c.typed, keys, rest)
		}
	}
}

// A character that comes in two parts is one key, and the end of the input is an interrupt.
func TestReadKeys(t *testing.T) {
	keys, done := make(chan string, 10), make(chan struct{})
	readKeys(&parts{"é"[:1], "é"[1:], "\x1b[", "j"}, keys, done)
	close(keys)
	var got []string
	for key := range keys {
		got = append(got, key)
	}
	if want := []string{"é", "j", keyInterrupt}; !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
}

// parts are read one at a time.
type parts []string

func (p *parts) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	*p = (*p)[1:]
	return n, nil
}
