package engine_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// FuzzParseKey holds the rules for keys: what is accepted obeys all of them and
// is its own only spelling, and what is harmless beyond doubt is accepted.
func FuzzParseKey(f *testing.F) {
	for _, s := range []string{
		"account:12345", "repo:web/src/auth.ts", "a", "a/b/c", "", "/", "a/", "/a", "a//b", ".", "..", "a/./b", "a/../b",
		"a/.../b", "..a/b..",
		"account:0123", "src/../x", "caf\u00e9", "cafe\u0301", "a\u200bb", "a\u200db", "\ufeffa", "a\u202eb", "a\u2066b",
		"a\u0000b", "a\nb", "a\x7f", "a\u0085", "\xff", "\xed\xa0\x80",
		"\u212b", "\u1e9b\u0323", "\u0344", "key with spaces", "\u00a0", "日本語/キー", "👩‍👩‍👧", "a\u2028b", "a\ufffdb",
		"refs/..", "--upload-pack=x",
		"1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16", "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17",
		strings.Repeat("x", interlock.MaxKeyBytes), strings.Repeat("x", interlock.MaxKeyBytes+1),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key, err := engine.ParseKey(s)
		problem := keyRule(s)
		if err != nil {
			if key != "" {
				t.Errorf("%q is refused and comes back as %q", s, key)
			}
			if problem == "" && harmless(s) {
				t.Errorf("%q breaks no rule, but: %v", s, err)
			}
			return
		}
		if string(key) != s {
			t.Errorf("%q comes back as %q: two spellings of one key", s, key)
		}
		if problem != "" {
			t.Errorf("%q is accepted, though it %s", s, problem)
		}
		if again, err := engine.ParseKey(string(key)); err != nil || again != key {
			t.Errorf("%q does not round trip: %q, %v", s, again, err)
		}
	})
}

// keyRule returns which rule of the design a key breaks, or "".
func keyRule(s string) string {
	switch {
	case len(s) > interlock.MaxKeyBytes:
		return "is too long"
	case !utf8.ValidString(s):
		return "is no UTF-8"
	case !norm.NFC.IsNormalString(s):
		return "is not in NFC"
	}
	segments := strings.Split(s, "/")
	if len(segments) > interlock.MaxKeySegments {
		return "is too deep"
	}
	for _, seg := range segments {
		if seg == "" || seg == "." || seg == ".." {
			return "has the segment " + seg
		}
		if seg != strings.Trim(seg, " ") {
			return "has a segment with a space at an end"
		}
	}
	for _, r := range s {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) ||
			strings.ContainsRune("\u200b\u200c\u200d\u2060\ufeff", r) {
			return "has a control, bidirectional or zero-width character"
		}
		if unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) || r == '\u2800' {
			return "has a character that nobody sees"
		}
	}
	return ""
}

// harmless: letters, digits, and what is printed on a keyboard.
func harmless(s string) bool {
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && (r < ' ' || r > '~') {
			return false
		}
	}
	return true
}

// realJournal is the journal of a random run, and a snapshot in the middle of it.
func realJournal(tb testing.TB) (entries [][]byte, snapshot []byte) {
	g, err := run(program(7, 150))
	if err != nil {
		tb.Fatal(err)
	}
	if g.snapshot == nil {
		if err := g.snap(); err != nil {
			tb.Fatal(err)
		}
	}
	return g.journal, g.snapshot
}

// FuzzApply: for any bytes, reading an entry or folding it into a state may return an error,
// but never panics; and an entry that can be read is read the same twice.
func FuzzApply(f *testing.F) {
	entries, _ := realJournal(f)
	for i, entry := range entries {
		f.Add(uint16(i), entry)
		f.Add(uint16(0), entry)
	}
	f.Add(uint16(0), []byte{})
	f.Add(uint16(1), bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(t *testing.T, prefix uint16, entry []byte) {
		var first, second []string
		err := record.DecodeEntry(entry, func(ev *record.Event) error {
			first = append(first, eventText(ev))
			return nil
		})
		again := record.DecodeEntry(entry, func(ev *record.Event) error {
			second = append(second, eventText(ev))
			return nil
		})
		if (err == nil) != (again == nil) || strings.Join(first, "\n") != strings.Join(second, "\n") {
			t.Errorf("read twice with different results: %v, %v", err, again)
		}
		e := engine.New()
		for _, before := range entries[:int(prefix)%(len(entries)+1)] {
			if err := e.Apply(before); err != nil {
				t.Fatal(err)
			}
		}
		if e.Apply(entry) != nil {
			return // after an error the engine is of no use
		}
		e.Hash()
		var out engine.Output
		e.Step(&engine.Recover{Head: engine.Head{At: e.Now()}, Epoch: 1 << 40}, &out)
		e.Step(&engine.Tick{Head: engine.Head{At: e.Now()}}, &out)
	})
}

// FuzzReadSnapshot: the same for snapshots. Damage is the journal's to find, by its
// checksums; here it may lead to a wrong state, but to no panic.
func FuzzReadSnapshot(f *testing.F) {
	_, snapshot := realJournal(f)
	f.Add(snapshot)
	f.Add([]byte{})
	f.Add(binary.LittleEndian.AppendUint32(nil, 1<<31))
	for i := 0; i < len(snapshot); i += 97 {
		f.Add(snapshot[:i])
		changed := bytes.Clone(snapshot)
		changed[i] ^= 0x55
		f.Add(changed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := engine.ReadSnapshot(bytes.NewReader(data))
		if err != nil {
			return
		}
		var buf bytes.Buffer
		if err := e.WriteSnapshot(&buf); err != nil {
			t.Fatal(err)
		}
		var out engine.Output
		e.Step(&engine.Recover{Head: engine.Head{At: e.Now()}, Epoch: 1 << 40}, &out)
		e.Step(&engine.Tick{Head: engine.Head{At: e.Now()}}, &out)
	})
}
