package journaltest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

func emptyStore(b *trial) {
	j := b.own()
	if j.Epoch() == 0 {
		b.Error("the first epoch is 0")
	}
	if j.First() != 1 || j.Tail() != 1 {
		b.Errorf("first %d and tail %d, want 1 and 1: the epoch record", j.First(), j.Tail())
	}
	b.wantEntries(j, "")
	if at, r, err := j.Snapshot(b.Context()); at != 0 || r != nil || err != nil {
		b.Errorf("snapshot: index %d, reader %v, error %v, want none", at, r, err)
	}
	if j.Low() {
		b.Error("a fresh store is low on space")
	}
	if err := j.Barrier(b.Context()); err != nil {
		b.Errorf("barrier: %v", err)
	}
}

// Law 1.
func denseOrder(b *trial) {
	j := b.own()
	for i := range 20 {
		b.append(j, strings.Split(strings.Repeat("x ", i%4+1), " ")[:i%4+1]...)
	}
	for i, e := range b.read(j, 1) {
		if e.Index != interlock.Index(i+1) {
			b.Fatalf("entry %d has index %d", i+1, e.Index)
		}
		if e.Epoch != j.Epoch() {
			b.Fatalf("entry %d has epoch %d, want %d", e.Index, e.Epoch, j.Epoch())
		}
	}
}

// Law 2.
func appendIsReadable(b *trial) {
	j := b.own()
	b.append(j, "a")
	b.wantEntries(j, "", "a")
	b.append(j, "b", "c")
	b.wantEntries(j, "", "a", "b", "c")
	if j.Tail() != 4 {
		b.Errorf("tail %d, want 4", j.Tail())
	}
}

func appendKeepsNoSlice(b *trial) {
	j := b.own()
	data := raw("first")
	if err := j.Append(b.Context(), 2, data); err != nil {
		b.Fatal(err)
	}
	copy(data[0], "XXXXX")
	b.wantEntries(j, "", "first")
}

// Law 5, as far as one owner can see it.
func appendIsCompareAndSet(b *trial) {
	j := b.own()
	b.append(j, "a")
	for _, first := range []interlock.Index{0, 1, 2, 4, 100} {
		b.wantError(fmt.Sprint("append at ", first), j.Append(b.Context(), first, raw("no")), journal.ErrMisuse)
	}
	b.append(j, "b")
	b.wantEntries(j, "", "a", "b")
}

func appendMisuse(b *trial) {
	j := b.own()
	big := strings.Repeat("x", journal.MaxAppendBytes)
	for _, c := range []struct {
		name    string
		entries [][]byte
	}{
		{"no entries", nil},
		{"an empty entry", raw("")},
		{"an empty entry among others", raw("a", "", "b")},
		{"one byte too many", raw(big + "x")},
		{"one byte too many in sum", raw(big, "x")},
		{"one entry too many", raw(strings.Split(strings.Repeat("x ", journal.MaxAppendEntries)+"x", " ")...)},
	} {
		b.wantError("append of "+c.name, j.Append(b.Context(), 2, c.entries), journal.ErrMisuse)
	}
	b.append(j, "still usable")
	b.wantEntries(j, "", "still usable")
}

func appendLargest(b *trial) {
	j := b.own()
	one := strings.Repeat("one", journal.MaxAppendBytes)[:journal.MaxAppendBytes]
	b.append(j, one)
	half := strings.Repeat("2", journal.MaxAppendBytes/2)
	b.append(j, half, half)
	b.append(j, "small")
	b.wantEntries(j, "", one, half, half, "small")
}

func appendManySmall(b *trial) {
	j := b.own()
	group := make([][]byte, 1000)
	for i := range group {
		group[i] = fmt.Append(nil, "entry ", i)
	}
	for n := range 3 {
		if err := j.Append(b.Context(), interlock.Index(2+n*len(group)), group); err != nil {
			b.Fatal(err)
		}
	}
	got := b.read(j, 2)
	if len(got) != 3*len(group) {
		b.Fatalf("read %d entries, want %d", len(got), 3*len(group))
	}
	for i, e := range got {
		if !bytes.Equal(e.Data, group[i%len(group)]) {
			b.Fatalf("entry %d is %q", e.Index, e.Data)
		}
	}
}

// As many entries as there may be, and as many bytes.
func appendMostEntries(b *trial) {
	j := b.own()
	const each = journal.MaxAppendBytes / journal.MaxAppendEntries
	entries := make([][]byte, journal.MaxAppendEntries)
	for i := range entries {
		entries[i] = fmt.Appendf(nil, "%0*d", each, i)
	}
	if err := j.Append(b.Context(), 2, entries); err != nil {
		b.Fatal(err)
	}
	for i, e := range b.read(j, 2) {
		if !bytes.Equal(e.Data, entries[i]) {
			b.Fatalf("entry %d is %q", e.Index, e.Data)
		}
	}
	if j.Tail() != 1+journal.MaxAppendEntries {
		b.Errorf("tail %d, want %d", j.Tail(), 1+journal.MaxAppendEntries)
	}
}

func appendAnyBytes(b *trial) {
	j := b.own()
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	want := []string{
		"\x00", "\x00\x00\x00\x00\x00\x00\x00\x00", string(all[:]), "\xff", "\r\n", strings.Repeat("\x00", 5000),
	}
	b.append(j, want...)
	b.wantEntries(j, append([]string{""}, want...)...)
}

func readRange(b *trial) {
	j := b.own()
	for i := 2; i <= 30; i++ {
		b.append(j, fmt.Sprint("e", i))
	}
	for from := interlock.Index(1); from <= 30; from++ {
		got := b.read(j, from)
		if len(got) != int(30-from+1) || got[0].Index != from {
			b.Fatalf("read from %d gave %v", from, texts(got))
		}
	}
	if got := b.read(j, 31); len(got) != 0 {
		b.Errorf("read above the tail gave %v", texts(got))
	}
	b.wantError("read from 0", j.Read(b.Context(), 0, func(journal.Entry) error { return nil }), journal.ErrTrimmed)
}

func readStops(b *trial) {
	j := b.own()
	b.append(j, "a", "b", "c")
	stop := fmt.Errorf("enough")
	n := 0
	err := j.Read(b.Context(), 1, func(journal.Entry) error {
		if n++; n == 2 {
			return stop
		}
		return nil
	})
	b.wantError("read", err, stop)
	if n != 2 {
		b.Errorf("visited %d entries after it was told to stop at 2", n)
	}
}

// A reader sees a prefix of the journal that holds at least everything that was
// appended before it began.
func readBesideAppend(b *trial) {
	j := b.own()
	const rounds = 200
	done := make(chan error, 1)
	go func() {
		for i := range rounds {
			first := j.Tail() + 1
			if err := j.Append(b.Context(), first, raw(fmt.Sprint(first), fmt.Sprint(first+1))); err != nil {
				done <- fmt.Errorf("append %d: %w", i, err)
				return
			}
		}
		done <- nil
	}()
	for running := true; running; {
		select {
		case err := <-done:
			if err != nil {
				b.Fatal(err)
			}
			running = false
		default:
		}
		before := j.Tail()
		got := b.read(j, 1)
		if interlock.Index(len(got)) < before {
			b.Fatalf("read %d entries although the tail was %d before", len(got), before)
		}
		for i, e := range got {
			if e.Index != interlock.Index(i+1) || i > 0 && string(e.Data) != fmt.Sprint(i+1) {
				b.Fatalf("entry %d has index %d and data %q", i+1, e.Index, e.Data)
			}
		}
	}
	if j.Tail() != 1+2*rounds {
		b.Errorf("tail %d, want %d", j.Tail(), 1+2*rounds)
	}
}
