package shard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/interlockdev/interlock"
)

// wantsSnapshot reports whether enough was appended since the last snapshot and none is
// being made. If so, the caller has snapshot's work done. The committer calls it.
func (s *Shard) wantsSnapshot() bool {
	if s.snapshotBytes < 0 || s.sinceSnapshot < s.snapshotBytes || s.snapshotting.Load() {
		return false
	}
	s.snapshotting.Store(true)
	s.sinceSnapshot = 0
	return true
}

// snapshot gives the work of making a snapshot of what is durable now. It may be done
// beside all else.
//
// The live engine is not touched, because writing its state out would stop the
// shard for as long as that takes. A second engine is made from the last snapshot
// and the journal instead, on one core; it costs memory for as long as the snapshot is
// being made.
func (s *Shard) snapshot() func() {
	target := s.At().Index
	return func() {
		defer s.snapshotting.Store(false)
		began := s.watch()
		r, err := s.replay(s.ctx, target, inTurn)
		if err == nil && r.at != target {
			err = fmt.Errorf("shard: the journal ends at entry %d, and %d is durable", r.at, target)
		}
		if err == nil {
			err = s.save(s.ctx, target, r)
		}
		switch {
		case err == nil:
			s.log.Info("snapshot", "index", target, "took", s.watch().Sub(began))
		case errors.Is(err, context.Canceled): // by Close, which makes one itself
		default:
			// Nothing is lost by it: the next start replays more.
			s.log.Warn("no snapshot; the next one is tried after as much again was written", "index", target, "error", err)
		}
	}
}

// save stores a snapshot and lets the journal forget what is older than the
// history to keep.
func (s *Shard) save(ctx context.Context, at interlock.Index, r replayed) error {
	if err := s.journal.SaveSnapshot(ctx, at, r.engine.WriteSnapshot); err != nil {
		return err
	}
	s.snapshotAt.Store(uint64(at))
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
	if err := s.save(ctx, at, replayed{engine: s.owner.eng}); err != nil {
		s.log.Warn("no last snapshot; the next start replays the journal instead", "index", at, "error", err)
	}
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
