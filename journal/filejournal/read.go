package filejournal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Read implements journal.Journal. It opens the segments for itself, checks what
// it passes, and looks at nothing behind the tail.
func (j *Journal) Read(ctx context.Context, from interlock.Index, visit func(journal.Entry) error) error {
	j.mu.Lock()
	closed, segs, tail := j.closed, slices.Clone(since(j.segments, from)), j.tail
	j.mu.Unlock()
	switch {
	case closed:
		return errClosed
	case from < segs[0].first:
		return trimmed(from, segs[0].first)
	case from > tail:
		return nil
	}
	w := walker{dir: j.dir, path: j.path, until: tail}
	err := w.walk(ctx, segs, func(h frameHeader, body []byte) error {
		return visitFrom(h, body, from, visit)
	})
	if errors.Is(err, fs.ErrNotExist) && j.First() > segs[0].first {
		return trimmed(from, j.First())
	}
	if errors.Is(err, fs.ErrClosed) {
		return errClosed
	}
	return err
}

func trimmed(from, first interlock.Index) error {
	return fmt.Errorf("%w: index %d, the first is %d", journal.ErrTrimmed, from, first)
}

// visitFrom visits the entries of a frame from an index on.
func visitFrom(h frameHeader, body []byte, from interlock.Index, visit func(journal.Entry) error) error {
	if h.last() < from {
		return nil
	}
	return h.each(body, func(e journal.Entry) error {
		if e.Index < from {
			return nil
		}
		return visit(e)
	})
}
