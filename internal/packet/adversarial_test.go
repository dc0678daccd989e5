//go:build unix

package packet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/interlockdev/interlock"
)

// Documents that would cost a naive comparison quadratic time or space cost little.
func TestAdversarialDocuments(t *testing.T) {
	const size = MaxCompareBytes - 64
	repeat := func(s string) string { return strings.Repeat(s, size/len(s)) }
	list := func(first, s, last string) string { return "[" + first + repeat(s) + last + "]" }
	numbered := func(from, step int) string {
		var b strings.Builder
		for i := from; b.Len() < size-16; i += step {
			fmt.Fprintf(&b, "%d\n", i)
		}
		return b.String()
	}
	deep := maxDepth - 2
	bigKey := `{"` + repeat("k")[:size/2] + `":[`
	tests := []struct{ name, contentType, then, now string }{
		{"lists without anything in common", jsonType, list("", "1,", "1"), list("", "2,", "2")},
		{"lists of two values, turned around", jsonType, list("", "0,1,", "0"), list("", "1,0,0,1,", "0")},
		{"lists shifted by one", jsonType, list("", `"a","b",`, "0"), list("1,", `"a","b",`, "0")},
		{
			"deep nests", jsonType, strings.Repeat("[", deep) + "1" + strings.Repeat("]", deep),
			strings.Repeat("[", deep) + "2" + strings.Repeat("]", deep),
		},
		{
			"deep nests with wide levels", jsonType,
			strings.Repeat(`[0,"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",`, deep) + "1" + strings.Repeat("]", deep),
			strings.Repeat(`[1,"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",`, deep) + "2" + strings.Repeat("]", deep),
		},
		{"too deep", jsonType, repeat("[")[:size/2] + repeat("]")[:size/2], "1"},
		{
			"a name that is long and has many members", jsonType, bigKey + strings.Repeat("1,", size/5) + "1]}",
			bigKey + strings.Repeat("2,", size/5) + "1]}",
		},
		{
			"many members", jsonType, "{" + strings.Join(strings.Fields(numbers(size/16, `"%06d":1,`)), "") + `"":1}`,
			"{" + strings.Join(strings.Fields(numbers(size/16, `"%06d":2,`)), "") + `"":1}`,
		},
		{"lines without anything in common", textType, numbered(0, 2), numbered(1, 2)},
		{"every other line", textType, numbered(0, 1), numbered(0, 2)},
		{"empty lines", textType, repeat("\n"), repeat("\n\n\n\na")},
		{"one long line", textType, repeat("a"), repeat("b")},
		{"periodic lines", textType, repeat("a\nb\n"), repeat("b\na\na\n")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if len(tt.then) > MaxCompareBytes || len(tt.now) > MaxCompareBytes {
				t.Fatalf("%d and %d bytes are more than what is compared", len(tt.then), len(tt.now))
			}
			s := stale(document(1, tt.contentType, tt.then), document(2, tt.contentType, tt.now))
			many := slices.Repeat([]interlock.Stale{s}, interlock.MaxStale)
			start := processorTime(t)
			p := New(many, false, Commit)
			// A quadratic comparison of one of them would take minutes.
			if took := processorTime(t) - start; took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			if len(p.Message) > MaxBytes {
				t.Errorf("a message of %d bytes", len(p.Message))
			}
			if last := p.Changes[len(p.Changes)-1].Diff; len(p.Changes) == len(many) &&
				len(tt.then)+len(tt.now) > MaxWorkBytes/8 && last.Kind != interlock.SizesOnly {
				t.Errorf("after so much work the last one is still compared: %+v", last)
			}
		})
	}
	large := stale(document(1, textType, strings.Repeat("a\n", MaxCompareBytes/2+1)), document(2, textType, "b"))
	if d := New([]interlock.Stale{large}, false, Commit).Changes[0].Diff; d.Kind != interlock.SizesOnly {
		t.Errorf("a document of more than %d bytes is compared: %+v", MaxCompareBytes, d)
	}
}

// processorTime is how long this process has computed, however busy the machine is.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano())
}
