package journal

import (
	"context"
	"fmt"
	"io"

	"github.com/interlockdev/interlock"
)

// MaxAppendBytes bounds the sum of the entries' lengths of one Append. (etcd
// refuses requests above 1.5 MiB, Firestore documents above 1 MiB.)
const MaxAppendBytes = 1_000_000

// MaxAppendEntries bounds the entries of one Append, so that their lengths add little
// to their bytes in every backend.
const MaxAppendEntries = 100_000

// CheckEntries checks the entries of an Append. It returns an ErrMisuse or nil.
func CheckEntries(entries [][]byte) error {
	if len(entries) == 0 {
		return fmt.Errorf("%w: append of no entries", ErrMisuse)
	}
	if len(entries) > MaxAppendEntries {
		return fmt.Errorf("%w: append of %d entries, at most %d", ErrMisuse, len(entries), MaxAppendEntries)
	}
	total := 0
	for i, e := range entries {
		if len(e) == 0 {
			return fmt.Errorf("%w: entry %d of the append is empty", ErrMisuse, i)
		}
		total += len(e)
	}
	if total > MaxAppendBytes {
		return fmt.Errorf("%w: append of %d bytes, at most %d", ErrMisuse, total, MaxAppendBytes)
	}
	return nil
}

// Entry is one record of the journal.
type Entry struct {
	Index interlock.Index
	Epoch interlock.Epoch
	// Data is the data passed to Append. It is empty for exactly one entry of each epoch, its
	// first: the record that opened the epoch.
	Data []byte
}

// Journal is one shard's log, opened for writing by one owner. A Journal that a backend's Open
// returns has already won the epoch: its epoch record is durable and is the last entry.
//
// The law, which journaltest checks for every backend:
//
//  1. Entries have one dense total order: indexes 1, 2, 3, ...
//  2. The entries of an Append that returned nil are in all later reads.
//  3. After Open returned epoch e, no Append of a smaller epoch can succeed.
//  4. No ghosts: once a later Open has returned, an Append with an unknown outcome is decided
//     for ever. It is then in all reads, or in none.
//  5. Append is a compare-and-set on (epoch, tail).
//  6. SaveSnapshot and Truncate are guarded by the epoch too.
//  7. Open reads the tail after fencing, not before.
//
// Append, SaveSnapshot, Truncate and Barrier may each be called by one goroutine
// at a time, Read, Snapshot and Low by any number, all of them concurrently with
// each other.
type Journal interface {
	// Epoch is the epoch that Open won. It does not change.
	Epoch() interlock.Epoch

	// Tail is the index of the last durable entry.
	Tail() interlock.Index

	// First is the index of the oldest entry that is still there: 1, or higher
	// after Truncate. A journal is never empty: it keeps at least its last entry.
	First() interlock.Index

	// Append makes entries durable, all of them or none, as first, first+1, ...; first must be
	// Tail()+1, and CheckEntries must return nil for them: there is at least one and at most
	// MaxAppendEntries, none is empty, and together they do not exceed MaxAppendBytes. Append
	// does not keep the slices.
	//
	// ErrNoSpace and ErrMisuse mean that nothing was written and that the journal is as usable
	// as before. After any other error, also that of an ended context, it is not: the outcome
	// may be unknown, and only a new Open can tell. ErrFenced means that it is unusable because
	// another owner opened a later epoch.
	Append(ctx context.Context, first interlock.Index, entries [][]byte) error

	// Barrier returns nil only if this epoch was still the newest at some moment
	// after Barrier was called. An answer that changed nothing (a renewal, a
	// read) may leave only after a barrier that began after its request arrived.
	Barrier(ctx context.Context) error

	// Read calls visit for each durable entry from index from (at least First) up to the tail
	// as it was when Read was called, in order. The entry's Data is valid during the call only.
	// It stops at visit's first error and returns it. ErrTrimmed means that from is below
	// First, also when a Truncate overtook the reader; *DamageError reports what is damaged.
	Read(ctx context.Context, from interlock.Index, visit func(Entry) error) error

	// SaveSnapshot stores what write writes as the state after index at, durably
	// and atomically: a crash leaves the earlier snapshot. at must be at least 1,
	// not above Tail, and not below an earlier snapshot's index. An error of write
	// is returned as it is and changes nothing, ErrNoSpace, ErrNoFiles and ErrMisuse too.
	SaveSnapshot(ctx context.Context, at interlock.Index, write func(io.Writer) error) error

	// Snapshot opens the newest snapshot. It returns index 0 and a nil reader when
	// there is none. The reader verifies a checksum and fails before io.EOF when
	// it does not hold.
	Snapshot(ctx context.Context) (interlock.Index, io.ReadCloser, error)

	// SnapshotAt opens the newest kept snapshot at or below an index, likewise. The newest two are
	// kept, and older ones as Retain returns them, as far as their backend keeps any.
	SnapshotAt(ctx context.Context, upTo interlock.Index) (interlock.Index, io.ReadCloser, error)

	// Truncate lets the journal forget entries below before, which must not be
	// above the newest snapshot's index + 1. It may keep more than it must.
	Truncate(ctx context.Context, before interlock.Index) error

	// Low reports that space runs out: the journal now writes from its reserve. The shard then
	// admits only commands that free something (releases, ends).
	Low() bool

	// Close ends the ownership without touching the log. It waits for the calls that write.
	// Closing twice is no error; any other use after Close is ErrMisuse.
	Close() error
}
