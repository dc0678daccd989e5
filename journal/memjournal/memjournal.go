package memjournal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

// Store stands for a disk or a database. The zero value is empty and ready. All methods may be
// called by any number of goroutines.
type Store struct {
	mu      sync.Mutex // guards all fields
	epoch   interlock.Epoch
	entries []journal.Entry // the kept ones; an entry is never changed once it is in
	tail    interlock.Index

	saved  []journal.Saved // the snapshots, oldest first
	states map[interlock.Index][]byte

	low    bool
	faults []Fault
	hold   *Hold
}

// Open takes the shard over: the owner before is fenced from here on.
func (s *Store) Open(ctx context.Context) (*Journal, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	j := &Journal{store: s, epoch: s.epoch}
	s.add(s.epoch, nil)
	j.tail = s.tail
	return j, nil
}

func (s *Store) add(e interlock.Epoch, data []byte) {
	s.tail++
	s.entries = append(s.entries, journal.Entry{Index: s.tail, Epoch: e, Data: bytes.Clone(data)})
}

// Journal is one ownership of a Store.
type Journal struct {
	store *Store
	epoch interlock.Epoch

	// Guarded by store.mu.
	tail   interlock.Index // the last one that this owner knows to be durable
	dead   error           // why it is not usable any more
	closed bool
}

var _ journal.Journal = (*Journal)(nil)

// check returns why the journal cannot be used. The caller holds store.mu.
func (j *Journal) check() error {
	switch {
	case j.closed:
		return fmt.Errorf("%w: used after Close", journal.ErrMisuse)
	case j.store.epoch != j.epoch:
		return fmt.Errorf("%w: epoch %d was followed by %d", journal.ErrFenced, j.epoch, j.store.epoch)
	}
	return j.dead
}

func (j *Journal) Epoch() interlock.Epoch { return j.epoch }

func (j *Journal) Tail() interlock.Index {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	return j.tail
}

func (j *Journal) First() interlock.Index {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	return j.store.entries[0].Index
}

func (j *Journal) Append(ctx context.Context, first interlock.Index, entries [][]byte) error {
	s := j.store
	if err := s.pass(ctx); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		j.dead = fmt.Errorf("%w: an append was given up: %w", journal.ErrFailed, err)
		return j.dead
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := j.check(); err != nil {
		return err
	}
	if first != j.tail+1 {
		return fmt.Errorf("%w: append at index %d, expected %d", journal.ErrMisuse, first, j.tail+1)
	}
	if err := journal.CheckEntries(entries); err != nil {
		return err
	}
	fault := s.next()
	if fault == NoSpace {
		return journal.ErrNoSpace
	}
	if fault == NoFiles {
		return fmt.Errorf("%w: %w", journal.ErrNoSpace, journal.ErrNoFiles)
	}
	if fault == Lost {
		j.dead = fmt.Errorf("%w: injected, not stored", journal.ErrFailed)
		return j.dead
	}
	for _, e := range entries {
		s.add(j.epoch, e)
	}
	if fault == Stored {
		j.dead = fmt.Errorf("%w: injected, stored all the same", journal.ErrFailed)
		return j.dead
	}
	j.tail = s.tail
	return nil
}

func (j *Journal) Barrier(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	return j.check()
}

func (j *Journal) Read(ctx context.Context, from interlock.Index, visit func(journal.Entry) error) error {
	s := j.store
	s.mu.Lock()
	if j.closed {
		s.mu.Unlock()
		return fmt.Errorf("%w: used after Close", journal.ErrMisuse)
	}
	entries, tail := s.entries, j.tail
	s.mu.Unlock()
	if from < entries[0].Index {
		return fmt.Errorf("%w: index %d, the first is %d", journal.ErrTrimmed, from, entries[0].Index)
	}
	for _, e := range entries {
		if e.Index < from {
			continue
		}
		if e.Index > tail {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) SaveSnapshot(ctx context.Context, at interlock.Index, write func(io.Writer) error) error {
	if err := j.checkSnapshot(at); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s := j.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := j.check(); err != nil {
		return err
	}
	if n := len(s.saved); n > 0 && s.saved[n-1].Index == at {
		s.saved = s.saved[:n-1]
	}
	if s.states == nil {
		s.states = map[interlock.Index][]byte{}
	}
	s.states[at] = b.Bytes()
	s.saved = append(s.saved, journal.Saved{Index: at, Bytes: int64(b.Len())})
	s.retain()
	return nil
}

// maxOldBytes bounds the snapshots that only the past needs.
const maxOldBytes = 256 << 20

// retain drops the snapshots that are not kept.
func (s *Store) retain() {
	s.saved = journal.Retain(s.saved, s.entries[0].Index, maxOldBytes)
	maps.DeleteFunc(s.states, func(at interlock.Index, _ []byte) bool {
		return !slices.ContainsFunc(s.saved, func(x journal.Saved) bool { return x.Index == at })
	})
}

// newest is the index of the newest snapshot, 0 without one.
func (s *Store) newest() interlock.Index {
	if n := len(s.saved); n > 0 {
		return s.saved[n-1].Index
	}
	return 0
}

func (j *Journal) checkSnapshot(at interlock.Index) error {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	if err := j.check(); err != nil {
		return err
	}
	if at == 0 || at > j.tail || at < j.store.newest() {
		return fmt.Errorf("%w: snapshot at index %d; the earlier one is at %d, the tail at %d",
			journal.ErrMisuse, at, j.store.newest(), j.tail)
	}
	return nil
}

func (j *Journal) Snapshot(ctx context.Context) (interlock.Index, io.ReadCloser, error) {
	return j.SnapshotAt(ctx, ^interlock.Index(0))
}

func (j *Journal) SnapshotAt(ctx context.Context, upTo interlock.Index) (interlock.Index, io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	s := j.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.closed {
		return 0, nil, fmt.Errorf("%w: used after Close", journal.ErrMisuse)
	}
	for _, x := range slices.Backward(s.saved) {
		if x.Index <= upTo {
			return x.Index, io.NopCloser(bytes.NewReader(s.states[x.Index])), nil
		}
	}
	return 0, nil, nil
}

func (j *Journal) Truncate(ctx context.Context, before interlock.Index) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := j.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := j.check(); err != nil {
		return err
	}
	if newest := s.newest(); before > newest+1 {
		return fmt.Errorf("%w: truncate before %d, the snapshot is at %d", journal.ErrMisuse, before, newest)
	}
	for len(s.entries) > 1 && s.entries[0].Index < before {
		s.entries = s.entries[1:]
	}
	s.retain()
	return nil
}

func (j *Journal) Low() bool {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	return j.store.low
}

func (j *Journal) Close() error {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	j.closed = true
	return nil
}
