package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                         "plain",
		"a\x1b[31mred\x1b[0m":           "a [31mred [0m",
		"two\nlines\ttab":               "two lines tab",
		"bidi\u202eevil\u2066":          "bidievil",
		"zero\u200bwidth":               "zerowidth",
		"bad\xffutf8":                   "bad\ufffdutf8",
		"bell\a, c1 \u009b31m, del\x7f": "bell , c1  31m, del ",
		"line\u2028separator":           "line separator",
		"ordinary ünïcödé 東京 🙂 is kept": "ordinary ünïcödé 東京 🙂 is kept",
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := CleanLines("two\nlines\x1b"); got != "two\nlines " {
		t.Errorf("got %q", got)
	}
}

// What a command tells about an agent's files and words cannot steer the terminal.
func TestComplaintsAreClean(t *testing.T) {
	var out strings.Builder
	in, answer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	fmt.Fprintln(answer, "y")
	answer.Close()
	a := App{Err: &out, In: in}
	a.Complain("saved %s", "a\x1b]0;title\a")
	if yes, err := a.Confirm(t.Context(), "revoke \x1b[2J?"); err != nil || !yes {
		t.Error(yes, err)
	}
	if want := "interlock: saved a ]0;title \nrevoke  [2J? [y/N] "; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", 999 * time.Millisecond: "999ms", 1500 * time.Millisecond: "1.5s", 42 * time.Second: "42s",
		time.Minute: "1m00s", 61 * time.Minute: "1h01m", 49 * time.Hour: "2d01h", -time.Second: "-1.0s",
	} {
		if got := Short(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"account:1/x": "account:1/x", "a b": "'a b'", "": "''", "it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "a\nb": "'a\nb'",
	} {
		if got := Quote(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}
