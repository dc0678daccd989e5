package journaltest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

func (b *trial) wantSnapshot(j journal.Journal, at interlock.Index, want string) {
	b.Helper()
	got, r, err := j.Snapshot(b.Context())
	if err != nil {
		b.Fatalf("snapshot: %v", err)
	}
	if got != at {
		b.Fatalf("snapshot of index %d, want %d", got, at)
	}
	if r == nil {
		return
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		b.Fatalf("reading the snapshot: %v", err)
	}
	if string(data) != want {
		b.Fatalf("snapshot is %.40q (%d bytes), want %.40q (%d bytes)", data, len(data), want, len(want))
	}
}

func (b *trial) save(j journal.Journal, at interlock.Index, state string) {
	b.Helper()
	if err := j.SaveSnapshot(b.Context(), at, text(state)); err != nil {
		b.Fatalf("save snapshot at %d: %v", at, err)
	}
}

func snapshotRoundTrip(b *trial) {
	j := b.own()
	b.append(j, "a", "b", "c")
	b.save(j, 2, "two")
	b.wantSnapshot(j, 2, "two")
	b.save(j, 3, "")
	b.wantSnapshot(j, 3, "")
	b.save(j, 3, "three again")
	b.wantSnapshot(j, 3, "three again")
	large := strings.Repeat("0123456789abcdef", 200_000)
	b.save(j, 4, large)
	b.wantSnapshot(j, 4, large)
	b.close(j)

	j = b.own()
	b.wantSnapshot(j, 4, large)
	b.wantEntries(j, "", "a", "b", "c", "")
	b.save(j, 5, "five")
	b.wantSnapshot(j, 5, "five")
}

// A snapshot that was not finished leaves the one before.
func snapshotIsAtomic(b *trial) {
	j := b.own()
	b.append(j, "a", "b")
	fail := func(w io.Writer) error {
		if _, err := w.Write(bytes.Repeat([]byte("half"), 100_000)); err != nil {
			return err
		}
		return errHalfway
	}
	b.wantError("save", j.SaveSnapshot(b.Context(), 2, fail), errHalfway)
	b.wantSnapshot(j, 0, "")
	b.save(j, 2, "good")
	b.wantError("save", j.SaveSnapshot(b.Context(), 3, fail), errHalfway)
	b.wantSnapshot(j, 2, "good")

	// The reader of the old one is not disturbed by new ones.
	_, r, err := j.Snapshot(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for i := range 3 {
		b.save(j, 3, fmt.Sprint("new ", i))
	}
	if data, err := io.ReadAll(r); err != nil || string(data) != "good" {
		b.Errorf("the open snapshot became %q, %v", data, err)
	}
	b.close(j)
	b.wantSnapshot(b.own(), 3, "new 2")
}

func snapshotGuard(b *trial) {
	j := b.own()
	b.append(j, "a", "b", "c")
	for _, at := range []interlock.Index{0, 5, 100} {
		b.wantError(fmt.Sprint("save at ", at), j.SaveSnapshot(b.Context(), at, text("no")), journal.ErrMisuse)
	}
	b.save(j, 3, "three")
	b.wantError("save below the earlier one", j.SaveSnapshot(b.Context(), 2, text("no")), journal.ErrMisuse)
	b.wantSnapshot(j, 3, "three")
	b.append(j, "still usable")
}

func snapshotBesideAppend(b *trial) {
	j := b.own()
	b.append(j, "a")
	const n = 50
	done := make(chan error, 1)
	go func() {
		var all error
		for i := range n {
			all = errors.Join(all, j.Append(b.Context(), interlock.Index(3+i), raw("x")))
		}
		done <- all
	}()
	for i := range 10 {
		at := j.Tail()
		b.save(j, at, fmt.Sprint("state ", i))
		b.wantSnapshot(j, at, fmt.Sprint("state ", i))
		if err := j.Truncate(b.Context(), at); err != nil {
			b.Fatalf("truncate: %v", err)
		}
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	if j.Tail() != 2+n {
		b.Errorf("tail %d, want %d", j.Tail(), 2+n)
	}
}

func truncate(b *trial) {
	j := b.own()
	for i := 2; i <= 20; i++ {
		b.append(j, fmt.Sprint("e", i))
	}
	b.save(j, 10, "ten")
	check := func(before interlock.Index) {
		b.Helper()
		if j.First() > before {
			b.Fatalf("first is %d, only what is below %d may go", j.First(), before)
		}
		if j.First() > j.Tail() {
			b.Fatalf("first %d is above the tail %d", j.First(), j.Tail())
		}
		for _, e := range b.read(j, j.First()) {
			if e.Index > 1 && len(e.Data) > 0 && string(e.Data) != fmt.Sprint("e", e.Index) {
				b.Fatalf("entry %d is %q", e.Index, e.Data)
			}
		}
		if j.First() > 1 {
			err := j.Read(b.Context(), j.First()-1, func(journal.Entry) error { return nil })
			b.wantError("read below first", err, journal.ErrTrimmed)
		}
	}
	for _, before := range []interlock.Index{0, 1, 5, 3, 11} {
		if err := j.Truncate(b.Context(), before); err != nil {
			b.Fatalf("truncate before %d: %v", before, err)
		}
		check(11)
	}
	b.save(j, 20, "twenty")
	if err := j.Truncate(b.Context(), 21); err != nil {
		b.Fatalf("truncate everything: %v", err)
	}
	check(21)
	first := j.First()
	b.append(j, "e21")
	b.close(j)

	j = b.own()
	if j.First() != first || j.Tail() != 22 {
		b.Fatalf("first %d and tail %d after reopen, want %d and 22", j.First(), j.Tail(), first)
	}
	check(21)
	b.wantSnapshot(j, 20, "twenty")
}

// An older snapshot stays as long as the entries behind it, and goes with them.
func snapshotAt(b *trial) {
	j := b.own()
	want := func(upTo, at interlock.Index) {
		b.Helper()
		got, r, err := j.SnapshotAt(b.Context(), upTo)
		if err != nil || got != at {
			b.Fatalf("snapshot at or below %d: %d, %v; want %d", upTo, got, err, at)
		}
		if r == nil {
			return
		}
		defer r.Close()
		if data, err := io.ReadAll(r); err != nil || string(data) != fmt.Sprint("state ", at) {
			b.Fatalf("snapshot %d is %q, %v", at, data, err)
		}
	}
	want(1, 0)
	for i := 2; i <= 12; i++ {
		b.append(j, fmt.Sprint("e", i))
		if i%3 == 0 {
			b.save(j, interlock.Index(i), fmt.Sprint("state ", i))
		}
	}
	all := func() {
		b.Helper()
		for upTo := range interlock.Index(14) {
			want(upTo, min(12, upTo/3*3))
		}
	}
	all()
	b.close(j)
	j = b.own()
	all()

	if err := j.Truncate(b.Context(), 13); err != nil {
		b.Fatal(err)
	}
	at := interlock.Index(13)
	b.save(j, at, fmt.Sprint("state ", at))
	for upTo := range at {
		got, r, err := j.SnapshotAt(b.Context(), upTo)
		if err != nil {
			b.Fatal(err)
		}
		if r != nil {
			r.Close()
		}
		if got != 0 && got+1 < j.First() && got < 12 { // 12 is the newest but one
			b.Errorf("snapshot %d is kept, and the entries behind it begin at %d", got, j.First())
		}
	}
	want(100, at)
}

func truncateGuard(b *trial) {
	j := b.own()
	b.append(j, "a", "b", "c")
	b.wantError("truncate without a snapshot", j.Truncate(b.Context(), 2), journal.ErrMisuse)
	b.save(j, 2, "two")
	b.wantError("truncate above the snapshot", j.Truncate(b.Context(), 4), journal.ErrMisuse)
	if j.First() != 1 {
		b.Errorf("first is %d after refused truncations", j.First())
	}
	b.append(j, "still usable")
	b.wantEntries(j, "", "a", "b", "c", "still usable")
}
