package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/backup"
	"github.com/interlockdev/interlock/journal/chain"
)

// Backup is one that is being made, of the state as of one moment. It reads the journal: the
// newest snapshot, and the entries behind that. So the engine neither stops nor does anything for
// it, and a reader at its own pace holds up nothing.
type Backup struct {
	Header backup.Header

	s        *Shard
	snapshot io.ReadCloser // nil without one
}

// Backup begins one of all that was answered before it was called. The caller closes it. There is
// one at a time: a second one is refused with CodeOverloaded.
func (s *Shard) Backup(ctx context.Context) (_ *Backup, err error) {
	// First the entries are kept, then the snapshot is opened, and then the end is read: so
	// the snapshot is not of a later index than the end, and no entry between them is cut.
	if !s.backups.begin(s.journal.First()) {
		return nil, &interlock.Error{
			Code: interlock.CodeOverloaded, Message: "another backup is being made: try again when it has ended",
		}
	}
	b := &Backup{s: s}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	from, snapshot, err := s.journal.Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("shard: the snapshot cannot be opened: %w", err)
	}
	b.snapshot = snapshot
	s.backups.keep(from + 1)
	at, err := s.Read(ctx, "", func(*engine.Engine, engine.Time) {})
	if err != nil {
		return nil, err
	}
	b.Header = backup.Header{
		Shard: s.number, Epoch: at.Epoch, Index: at.Index, Snapshot: from,
		Time: time.Unix(0, int64(s.clock.Now())).UTC(),
	}
	return b, nil
}

// WriteTo writes the backup, once.
func (b *Backup) WriteTo(ctx context.Context, w io.Writer) (length int64, err error) {
	out := backup.NewWriter(w, b.Header)
	if b.snapshot != nil {
		if _, err := io.Copy(out, b.snapshot); err != nil {
			return out.Length(), fmt.Errorf("shard: the snapshot cannot be copied: %w", err)
		}
	}
	if b.Header.Snapshot < b.Header.Index {
		err = b.s.journal.Read(ctx, b.Header.Snapshot+1, func(e journal.Entry) error {
			if e.Index > b.Header.Index {
				return errReplayed
			}
			if err := b.s.ended(ctx); err != nil {
				return err
			}
			return out.Entry(e)
		})
		switch {
		case errors.Is(err, journal.ErrTrimmed):
			return out.Length(), fmt.Errorf(
				"shard: space is low, so the journal was cut while the backup was read: %w", err,
			)
		case err != nil && !errors.Is(err, errReplayed):
			return out.Length(), err
		}
	}
	err = out.Close()
	return out.Length(), err
}

// Close ends the backup, written or not.
func (b *Backup) Close() {
	if b.snapshot != nil {
		_ = b.snapshot.Close()
	}
	b.s.backups.end()
}

// backups keeps the entries that a backup is to read from being cut.
type backups struct {
	mu   sync.Mutex
	from interlock.Index // the oldest of them; 0 while no backup is made
}

func (k *backups) begin(from interlock.Index) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.from != 0 {
		return false
	}
	k.from = from
	return true
}

func (k *backups) keep(from interlock.Index) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.from = from
}

func (k *backups) end() { k.keep(0) }

// spare returns up to where the journal may be cut, which is before at most. Where space is low a
// backup fails rather than that holders cannot release.
func (k *backups) spare(before interlock.Index, low bool) interlock.Index {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.from == 0 || low {
		return before
	}
	return min(before, k.from)
}

// State is the state of a shard as of one moment, read from a backup or from a journal that no shard serves.
type State struct {
	Index interlock.Index
	Epoch interlock.Epoch

	engine *engine.Engine
	record chain.Record
}

// ReadBackup reads and decodes all of a backup.
func ReadBackup(ctx context.Context, f *backup.File) (*State, error) {
	return readState(ctx, f, f.Header.Index, f.Header.Epoch)
}

// ReadState reads and decodes all of a journal. It changes nothing.
func ReadState(ctx context.Context, j journal.Journal) (*State, error) {
	return readState(ctx, j, j.Tail(), j.Epoch())
}

func readState(ctx context.Context, from Source, at interlock.Index, epoch interlock.Epoch) (*State, error) {
	var l links
	r, err := replay(ctx, from, engine.New(), at, ahead, &l)
	if err != nil {
		return nil, err
	}
	if r.at != at {
		return nil, fmt.Errorf("shard: invariant broken: the state after entry %d was read up to %d", at, r.at)
	}
	return &State{Index: r.at, Epoch: epoch, engine: r.engine, record: l.record(r.at + 1)}, nil
}

// Head is the head of the journal's hash chain at the state.
func (st *State) Head() string { return st.record.Last().Head().String() }

// WriteSnapshot writes the state as a journal keeps it.
func (st *State) WriteSnapshot(w io.Writer) error {
	if _, err := w.Write(st.record.Append(nil)); err != nil {
		return err
	}
	return st.engine.WriteSnapshot(w)
}

// Hash is equal for equal states.
func (st *State) Hash() [32]byte { return st.engine.Hash() }
