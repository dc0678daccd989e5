package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal/chain"
)

// wantsSnapshot reports whether enough was appended since the last snapshot and none is
// being made, and what the engine has is in the journal or on its way there.
func (o *owner) wantsSnapshot() bool {
	s := o.s
	if s.snapshotBytes < 0 || o.term != nil || s.snapshotting.Load() {
		return false
	}
	return o.sinceSnapshot >= s.snapshotBytes+s.snapshotSize.Load() || o.pressed()
}

// While the journal is low on space, growth alone may bring no snapshot any more, because
// little is admitted. So one is made as soon as space is low, and again after these pauses,
// which grow while it does not help.
const (
	pressAfter = time.Second
	pressLater = time.Minute
)

// pressed reports whether a snapshot is due because space is low.
func (o *owner) pressed() bool {
	if !o.s.journal.Low() {
		o.pressPause = 0
		return false
	}
	if o.now < o.pressAt {
		return false
	}
	o.pressPause = min(max(2*o.pressPause, pressAfter), pressLater)
	o.pressAt = o.now.Add(o.pressPause)
	return true
}

// beginSnapshot returns the work of making a snapshot that the group brings, for the caller
// to do. It returns nil if there is none, or if one is being made.
func (s *Shard) beginSnapshot(g *group) (work func()) {
	if g.snapshot == nil || !s.snapshotting.CompareAndSwap(false, true) {
		return nil
	}
	snapshot, record := g.snapshot, s.links.record(s.journal.First())
	return func() { snapshot(record) }
}

// snapshot returns the work of making a snapshot of the engine's present state. It may be done
// beside all else, once that is durable.
//
// The live engine is not written out, because that would stop the shard for as long as it takes. Of
// a state in which little may still change it takes a picture at once, and that is written. Of a
// larger one, a second engine is made from the last snapshot and the journal, on one core; that
// costs as much time as all that was folded since, and memory for as long as it lasts.
func (o *owner) snapshot() func(chain.Record) {
	s, at := o.s, o.cur.first-1
	if uint64(at) == s.snapshotAt.Load() {
		// There is a snapshot of all this; perhaps more of the journal can go by now.
		return func(chain.Record) {
			defer s.snapshotting.Store(false)
			if err := s.cut(s.ctx, interlock.Index(s.snapshotAt.Load())); err != nil && !errors.Is(err, context.Canceled) {
				s.log.Warn("the journal cannot be truncated", "error", err)
			}
		}
	}
	o.sinceSnapshot = 0
	picture := o.eng.Picture(s.pictureEvents)
	return func(record chain.Record) {
		defer s.snapshotting.Store(false)
		began := s.watch()
		var err error
		if picture != nil {
			err = s.save(s.ctx, at, began, picture, record)
		} else {
			err = s.saveBeside(s.ctx, at, began, record)
		}
		switch {
		case err == nil:
			s.unsaved.Store(nil)
			s.log.Info("snapshot", "index", at, "head", record.Last().Head(), "took", s.watch().Sub(began))
		case errors.Is(err, context.Canceled): // by Close, which makes one itself
		default:
			// Nothing is lost by it: the next start replays more.
			s.unsaved.Store(&err)
			s.log.Warn(
				"snapshot failed; the next attempt follows after the same amount of writes, or soon if space is low", "index", at,
				"error", err,
			)
		}
	}
}

// saveBeside stores a snapshot of a second engine.
func (s *Shard) saveBeside(ctx context.Context, at interlock.Index, began time.Time, record chain.Record) error {
	r, err := s.replay(ctx, at, inTurn, nil)
	if err == nil && r.at != at {
		err = fmt.Errorf("shard: the journal ends at entry %d, and %d is durable", r.at, at)
	}
	if err != nil {
		return err
	}
	return s.save(ctx, at, began, r.engine, record)
}

// state is the source of a snapshot: an engine, or a picture of one.
type state interface{ WriteSnapshot(io.Writer) error }

// save stores a snapshot that was begun then, and lets the journal forget all entries
// older than the history to keep.
func (s *Shard) save(ctx context.Context, at interlock.Index, began time.Time, of state, record chain.Record) error {
	if got := record.Last().Index; got != at {
		return fmt.Errorf("shard: invariant broken: the chain is at entry %d, and the snapshot is of entry %d", got, at)
	}
	var size byteCount
	err := s.journal.SaveSnapshot(ctx, at, func(w io.Writer) error {
		w = io.MultiWriter(w, &size)
		if _, err := w.Write(record.Append(nil)); err != nil {
			return err
		}
		return of.WriteSnapshot(w)
	})
	if err != nil {
		return err
	}
	s.snapshotAt.Store(uint64(at))
	s.snapshotSize.Store(int64(size))
	if s.observer != nil {
		s.observer.Saved(s.watch().Sub(began))
	}
	return s.cut(ctx, at)
}

// cut lets the journal forget the entries that a snapshot at this index covers, except the kept history.
// While space is low it logs the reason for not cutting more.
func (s *Shard) cut(ctx context.Context, at interlock.Index) error {
	before := at + 1
	if s.keepBytes > 0 {
		before -= min(before, interlock.Index(s.keepBytes/s.size.mean()))
	}
	first := s.journal.First()
	s.kept.Store(before <= first)
	if before <= first {
		if s.journal.Low() {
			s.log.Warn("space is low, and the whole journal is within --keep-bytes: keep less history, or free space on "+
				"its disk",
				"first", first, "snapshot", at, "keep_bytes", s.keepBytes)
		}
		return nil
	}
	if before = s.backups.spare(before, s.journal.Low()); before <= first {
		return nil // the next snapshot cuts what a backup reads now
	}
	if err := s.journal.Truncate(ctx, before); err != nil {
		return err
	}
	if now := s.journal.First(); now > first {
		s.log.Info("the journal was truncated", "first", now, "was", first)
	}
	return nil
}

// shortReplay is how many entries an owner replays sooner than any snapshot is written, also where each is an object of
// its own in a bucket.
const shortReplay = 32

// lastSnapshot stores the live engine's state when everything else has ended. A
// failure costs the next start some time and nothing else.
func (s *Shard) lastSnapshot(ctx context.Context) {
	at := s.At().Index
	if s.snapshotBytes < 0 || uint64(at) <= s.snapshotAt.Load() {
		return
	}
	if s.handsOver.Load() && uint64(at)-s.snapshotAt.Load() <= shortReplay {
		return // the next owner waits, and replays the entries sooner than a snapshot is written and read
	}
	if err := s.save(ctx, at, s.watch(), s.owner.eng, s.links.record(s.journal.First())); err != nil {
		s.log.Warn("the final snapshot failed; the next start replays the journal instead", "index", at, "error", err)
	}
}

// byteCount counts the bytes written to it.
type byteCount int64

func (n *byteCount) Write(p []byte) (int, error) {
	*n += byteCount(len(p))
	return len(p), nil
}

// meanSize estimates the size of an entry.
type meanSize struct{ entries, bytes atomic.Int64 }

func (m *meanSize) add(entries int, bytes int64) {
	m.entries.Add(int64(entries))
	m.bytes.Add(bytes)
}

// mean is at least 1.
func (m *meanSize) mean() int64 {
	return max(1, m.bytes.Load()/max(1, m.entries.Load()))
}
