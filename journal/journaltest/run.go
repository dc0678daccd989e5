package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Open opens one shard's storage for writing, each time the same storage. While
// an earlier owner is open it either takes the shard over or returns ErrLocked.
type Open func(ctx context.Context) (journal.Journal, error)

// Run checks a backend. fresh is called once for each test and returns access to a storage that
// nothing was written to; it registers its clean-up with t.Cleanup. The journals are closed by
// the suite.
func Run(t *testing.T, fresh func(t *testing.T) Open) {
	for _, c := range []struct {
		name string
		run  func(*trial)
	}{
		{"EmptyStore", emptyStore},
		{"DenseOrder", denseOrder},
		{"AppendIsReadable", appendIsReadable},
		{"AppendKeepsNoSlice", appendKeepsNoSlice},
		{"AppendIsCompareAndSet", appendIsCompareAndSet},
		{"AppendMisuse", appendMisuse},
		{"AppendLargest", appendLargest},
		{"AppendManySmall", appendManySmall},
		{"AppendMostEntries", appendMostEntries},
		{"AppendAnyBytes", appendAnyBytes},
		{"Reopen", reopen},
		{"ClosedIsUnusable", closedIsUnusable},
		{"OldOwnerIsFenced", oldOwnerIsFenced},
		{"OldOwnerIsFencedAtOnce", oldOwnerIsFencedAtOnce},
		{"TakeoverDuringAppends", takeoverDuringAppends},
		{"NoGhosts", noGhosts},
		{"ReadRange", readRange},
		{"ReadStops", readStops},
		{"ReadBesideAppend", readBesideAppend},
		{"SnapshotRoundTrip", snapshotRoundTrip},
		{"SnapshotIsAtomic", snapshotIsAtomic},
		{"SnapshotGuard", snapshotGuard},
		{"SnapshotBesideAppend", snapshotBesideAppend},
		{"SnapshotAt", snapshotAt},
		{"Truncate", truncate},
		{"TruncateGuard", truncateGuard},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run(&trial{T: t, open: fresh(t)})
		})
	}
}

// trial is one test on one storage.
type trial struct {
	*testing.T
	open Open
}

// own opens the storage and closes the journal at the end of the test.
func (b *trial) own() journal.Journal {
	b.Helper()
	j, err := b.open(b.Context())
	if err != nil {
		b.Fatalf("open: %v", err)
	}
	b.Cleanup(func() { j.Close() })
	return j
}

// takeOver opens the storage while old is still open, or, where a backend
// excludes by a lock, after old was closed. Old is then a past owner either way.
func (b *trial) takeOver(old journal.Journal) journal.Journal {
	b.Helper()
	j, err := b.open(b.Context())
	if errors.Is(err, journal.ErrLocked) {
		b.close(old)
		j, err = b.open(b.Context())
	}
	if err != nil {
		b.Fatalf("second open: %v", err)
	}
	b.Cleanup(func() { j.Close() })
	return j
}

func (b *trial) close(j journal.Journal) {
	b.Helper()
	if err := j.Close(); err != nil {
		b.Fatalf("close: %v", err)
	}
}

// append appends at the tail.
func (b *trial) append(j journal.Journal, entries ...string) {
	b.Helper()
	if err := j.Append(b.Context(), j.Tail()+1, raw(entries...)); err != nil {
		b.Fatalf("append at %d: %v", j.Tail()+1, err)
	}
}

// read returns the entries of Read from index from on, with copied data.
func (b *trial) read(j journal.Journal, from interlock.Index) []journal.Entry {
	b.Helper()
	var got []journal.Entry
	err := j.Read(b.Context(), from, func(e journal.Entry) error {
		e.Data = bytes.Clone(e.Data)
		got = append(got, e)
		return nil
	})
	if err != nil {
		b.Fatalf("read from %d: %v", from, err)
	}
	return got
}

// wantEntries checks the whole journal: each string is one entry, "" an epoch
// record.
func (b *trial) wantEntries(j journal.Journal, want ...string) {
	b.Helper()
	got := b.read(j, j.First())
	if len(got) != len(want) {
		b.Fatalf("read %d entries, want %d: %v", len(got), len(want), texts(got))
	}
	for i, e := range got {
		if string(e.Data) != want[i] {
			b.Fatalf("entry %d is %q, want %q", e.Index, e.Data, want[i])
		}
	}
	if tail := got[len(got)-1].Index; j.Tail() != tail {
		b.Fatalf("tail is %d, the last entry read %d", j.Tail(), tail)
	}
}

func (b *trial) wantError(what string, err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("%s: got %v, want %v", what, err, want)
	}
}

// wantPast checks an error that a past owner got: it was fenced, or it was closed
// because the backend excludes by a lock.
func (b *trial) wantPast(what string, err error) {
	b.Helper()
	if !errors.Is(err, journal.ErrFenced) && !errors.Is(err, journal.ErrMisuse) {
		b.Fatalf("%s by a past owner: got %v, want %v", what, err, journal.ErrFenced)
	}
}

func raw(entries ...string) [][]byte {
	out := make([][]byte, len(entries))
	for i, e := range entries {
		out[i] = []byte(e)
	}
	return out
}

func texts(entries []journal.Entry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = fmt.Sprintf("%d:%.20q", e.Index, e.Data)
	}
	return out
}
