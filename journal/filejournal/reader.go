package filejournal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Reader reads the journal in a directory without owning it: a copy of another machine's, or one beside its
// server. It changes nothing. It sees what was durable when it was opened, as far as that is still there.
type Reader struct {
	dir       string
	disk      directory
	first     interlock.Index
	tail      interlock.Index
	epoch     interlock.Epoch
	snapshots []journal.Saved
}

// OpenReader reads and checks the whole log, as Verify does, and returns a reader of it. The caller closes it.
func OpenReader(ctx context.Context, dir string) (*Reader, error) {
	d, err := openDisk(dir)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		in, err := inspect(ctx, d, dir, true, nil)
		if errors.Is(err, fs.ErrNotExist) && attempt < attempts {
			continue
		}
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		return &Reader{
			dir: dir, disk: d, first: in.first(), tail: in.log.at.index, epoch: in.log.at.epoch, snapshots: in.snapshots,
		}, nil
	}
}

// First, Tail and Epoch are those of journal.Journal.
func (r *Reader) First() interlock.Index { return r.first }

// Tail is the index of the last entry; 0 in an empty directory.
func (r *Reader) Tail() interlock.Index { return r.tail }

// Epoch is that of the last owner.
func (r *Reader) Epoch() interlock.Epoch { return r.epoch }

// Read is that of journal.Journal.
func (r *Reader) Read(ctx context.Context, from interlock.Index, visit func(journal.Entry) error) error {
	if from < r.first {
		return trimmed(from, r.first)
	}
	err := dump(ctx, r.disk, r.dir, from, func(e journal.Entry) error {
		if e.Index > r.tail {
			return errPastTail
		}
		return visit(e)
	})
	if errors.Is(err, errPastTail) {
		return nil
	}
	return err
}

var errPastTail = errors.New("filejournal: the entry was written later")

// SnapshotAt is that of journal.Journal.
func (r *Reader) SnapshotAt(_ context.Context, upTo interlock.Index) (interlock.Index, io.ReadCloser, error) {
	for _, s := range slices.Backward(r.snapshots) {
		if s.Index > upTo {
			continue
		}
		f, err := openSnapshot(r.disk, r.dir, s.Index)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: the snapshot of index %d was removed meanwhile", journal.ErrTrimmed, s.Index)
		}
		if err != nil {
			return 0, nil, err
		}
		return s.Index, f, nil
	}
	return 0, nil, nil
}

// Close ends the reader.
func (r *Reader) Close() error { return r.disk.Close() }
