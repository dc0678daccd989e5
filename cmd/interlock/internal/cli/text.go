package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/invisible"
	"github.com/interlockdev/interlock/internal/prose"
)

// OrDash returns s, or a dash for "", so that scripts can cut columns.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Clean makes text of other agents safe for a terminal, on one line. The server
// has done so already; journals have not been through it, and what answers at an
// address need not be our server.
func Clean(s string) string { return invisible.Line(s) }

// CleanLines is clean for text that may have lines.
func CleanLines(s string) string { return invisible.Lines(s) }

// escaped returns text with its control characters, but for tabs and line breaks, and its
// invisible ones as \u escapes. Bytes that are no UTF-8 become the replacement character.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, string(utf8.RuneError)) {
		switch {
		case r == '\n' || r == '\t' || !invisible.Is(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Cut leaves at most width characters of a line, and shows where it did.
func Cut(s string, width int) string {
	if runes := []rune(s); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return s
}

// Clip leaves at most n bytes of a text.
func Clip(s string, n int) string { return strings.ToValidUTF8(s[:min(n, len(s))], "") }

// Short is a duration for people.
func Short(d time.Duration) string { return prose.Short(d) }

// Millis converts milliseconds of the HTTP API.
func Millis(n api.Milliseconds) time.Duration { return time.Duration(n) * time.Millisecond }

// ShortMillis is a duration of the HTTP API for people.
func ShortMillis(n api.Milliseconds) string { return Short(Millis(n)) }

// Quote makes one word for a POSIX shell.
func Quote(s string) string { return prose.ShellWord(s) }

// Count is "1 waiter" or "3 waiters".
func Count(n int, one, many string) string { return prose.Count(n, one, many) }

// Bytes is a number of bytes for people.
func Bytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/unit, 0
	for f >= unit && i < 4 {
		f, i = f/unit, i+1
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGTP"[i])
}
