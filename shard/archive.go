package shard

import (
	"context"
	"io"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/journal"
)

// Archive is a journal without an owner, such as a copy of another machine's: it answers about the past
// and changes nothing.
type Archive struct{ s *Shard }

// Log is the part of a journal that an Archive reads.
type Log interface {
	First() interlock.Index
	Tail() interlock.Index
	Epoch() interlock.Epoch
	Read(ctx context.Context, from interlock.Index, visit func(journal.Entry) error) error
	SnapshotAt(ctx context.Context, upTo interlock.Index) (interlock.Index, io.ReadCloser, error)
}

// NewArchive makes an archive of a log.
func NewArchive(from Log) *Archive {
	s := &Shard{epoch: from.Epoch(), journal: logJournal{Log: from}}
	s.durable.Store(uint64(from.Tail()))
	return &Archive{s}
}

// logJournal makes a journal of a log, for readers.
type logJournal struct {
	journal.Journal
	Log
}

func (r logJournal) First() interlock.Index { return r.Log.First() }
func (r logJournal) Tail() interlock.Index  { return r.Log.Tail() }
func (r logJournal) Epoch() interlock.Epoch { return r.Log.Epoch() }

func (r logJournal) Read(ctx context.Context, from interlock.Index, visit func(journal.Entry) error) error {
	return r.Log.Read(ctx, from, visit)
}

func (r logJournal) SnapshotAt(ctx context.Context, upTo interlock.Index) (interlock.Index, io.ReadCloser, error) {
	return r.Log.SnapshotAt(ctx, upTo)
}

// At is the newest entry.
func (a *Archive) At() interlock.At { return a.s.At() }

// First is Shard.First.
func (a *Archive) First() interlock.Index { return a.s.First() }

// LookBack is Shard.LookBack.
func (a *Archive) LookBack(
	ctx context.Context, p *Past, index interlock.Index, now engine.Time,
	look func(*engine.Engine, engine.Time) (done bool),
) (interlock.At, error) {
	return a.s.LookBack(ctx, p, index, now, look)
}

// Compare is Shard.Compare.
func (a *Archive) Compare(
	ctx context.Context, p *Past, first, second Moment, look func(first, second *engine.Engine) (done bool),
) (at interlock.At, failed interlock.Index, err error) {
	return a.s.Compare(ctx, p, first, second, look)
}

// Oldest is Shard.Oldest.
func (a *Archive) Oldest(ctx context.Context) (interlock.Index, error) { return a.s.Oldest(ctx) }

// IndexAt is Shard.IndexAt.
func (a *Archive) IndexAt(ctx context.Context, t engine.Time, margin time.Duration) (interlock.Index, error) {
	return a.s.IndexAt(ctx, t, margin)
}

// Seek is Shard.Seek.
func (a *Archive) Seek(ctx context.Context, t engine.Time) (interlock.Index, error) {
	return a.s.Seek(ctx, t)
}

// Follow is Shard.Follow; nothing new ever comes.
func (a *Archive) Follow(ctx context.Context, f Follower) error {
	r := &followerReader{s: a.s, f: &f, next: f.From, pieces: Joiner{Midway: true}, rested: time.Now()}
	if r.next == 0 {
		r.next = a.First()
	}
	if r.next <= a.At().Index {
		if err := r.read(ctx); err != nil {
			return err
		}
	}
	if err := r.reached(a.At().Index); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}
