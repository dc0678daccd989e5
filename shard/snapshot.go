package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/interlockdev/interlock"
)

// wantsSnapshot reports whether enough was appended since the last snapshot and none is
// being made, and what the engine has is in the journal or on its way there.
func (o *owner) wantsSnapshot() bool {
	s := o.s
	return s.snapshotBytes >= 0 && o.sinceSnapshot >= s.snapshotBytes+s.snapshotSize.Load() && o.term == nil && !s.snapshotting.Load()
}

// beginsSnapshot reports whether the group brings the work of making a snapshot, and none
// is being made. If so, the caller has it done.
func (s *Shard) beginsSnapshot(g *group) bool {
	return g.snapshot != nil && s.snapshotting.CompareAndSwap(false, true)
}

// snapshot gives the work of making a snapshot of what the engine has now. It may be done
// beside all else, once that is durable.
//
// The live engine is not written out, because that would stop the shard for as long as it
// takes. Of a state in which little may still change it gives a picture at once, and that is
// written. Of a larger one, a second engine is made from the last snapshot and the journal, on
// one core; that costs as much time as all that was folded since, and memory for as long as
// it lasts.
func (o *owner) snapshot() func() {
	s, at := o.s, o.cur.first-1
	o.sinceSnapshot = 0
	picture := o.eng.Picture(s.pictureEvents)
	return func() {
		defer s.snapshotting.Store(false)
		began := s.watch()
		var err error
		if picture != nil {
			err = s.save(s.ctx, at, picture)
		} else {
			err = s.saveBeside(s.ctx, at)
		}
		switch {
		case err == nil:
			s.log.Info("snapshot", "index", at, "took", s.watch().Sub(began))
		case errors.Is(err, context.Canceled): // by Close, which makes one itself
		default:
			// Nothing is lost by it: the next start replays more.
			s.log.Warn("no snapshot; the next one is tried after as much again was written", "index", at, "error", err)
		}
	}
}

// saveBeside stores a snapshot of a second engine.
func (s *Shard) saveBeside(ctx context.Context, at interlock.Index) error {
	r, err := s.replay(ctx, at, inTurn)
	if err == nil && r.at != at {
		err = fmt.Errorf("shard: the journal ends at entry %d, and %d is durable", r.at, at)
	}
	if err != nil {
		return err
	}
	return s.save(ctx, at, r.engine)
}

// state is what a snapshot is written of: an engine, or a picture of one.
type state interface{ WriteSnapshot(io.Writer) error }

// save stores a snapshot and lets the journal forget what is older than the
// history to keep.
func (s *Shard) save(ctx context.Context, at interlock.Index, of state) error {
	var size byteCount
	err := s.journal.SaveSnapshot(ctx, at, func(w io.Writer) error { return of.WriteSnapshot(io.MultiWriter(w, &size)) })
	if err != nil {
		return err
	}
	s.snapshotAt.Store(uint64(at))
	s.snapshotSize.Store(int64(size))
	before := at + 1
	if s.keepBytes > 0 {
		before -= min(before, interlock.Index(s.keepBytes/s.size.mean()))
	}
	if before <= s.journal.First() {
		return nil
	}
	return s.journal.Truncate(ctx, before)
}

// lastSnapshot stores the live engine's state when everything else has ended. A
// failure costs the next start some time and nothing else.
func (s *Shard) lastSnapshot(ctx context.Context) {
	at := s.At().Index
	if s.snapshotBytes < 0 || uint64(at) <= s.snapshotAt.Load() {
		return
	}
	if err := s.save(ctx, at, s.owner.eng); err != nil {
		s.log.Warn("no last snapshot; the next start replays the journal instead", "index", at, "error", err)
	}
}

// byteCount counts what is written to it.
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
