package remote

import (
	"context"
	"io"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Reader reads a journal that another server owns, and fences no owner. It sees what was durable when it was
// made. The owner does not know it, and may truncate the log or replace the snapshot meanwhile: a read then
// fails with journal.ErrTrimmed or journal.ErrFailed, and a new Reader begins behind.
type Reader struct{ journal *Journal }

// Reader makes a reader of all that is durable now.
func (s *Store) Reader(ctx context.Context) (*Reader, error) {
	h, err := s.head(ctx)
	if err != nil {
		return nil, err
	}
	first, err := s.oldest(ctx)
	if err != nil {
		return nil, err
	}
	return &Reader{&Journal{store: s, tail: h.Tail, first: first, open: map[string]int{}}}, nil
}

// Snapshot returns the newest snapshot, as journal.Journal does.
func (r *Reader) Snapshot(ctx context.Context) (interlock.Index, io.ReadCloser, error) {
	return r.journal.Snapshot(ctx)
}

// Read visits the entries from an index on, as journal.Journal does.
func (r *Reader) Read(ctx context.Context, from interlock.Index, visit func(journal.Entry) error) error {
	return r.journal.Read(ctx, from, visit)
}
