package server

import (
	"context"
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/shard"
)

// NewArchive is the HTTP API of a journal without a server: /v1/at, /v1/differences, /v1/timeline and /v1/report answer
// as a server would, for any namespace, the first two without bounds of time and memory. Every other call about a
// namespace is refused.
func NewArchive(of *shard.Archive, version string) (http.Handler, error) {
	s, err := New(Config{
		Shard: archiveShard{noShard{elsewhere(func() Active { return Active{} })}, of}, Past: shard.Unbounded(),
		Version: version,
	})
	if err != nil {
		return nil, err
	}
	s.archive = true
	return s.HTTPHandler(), nil
}

// archiveShard is the shard of an archive.
type archiveShard struct {
	noShard
	of *shard.Archive
}

func (a archiveShard) At() interlock.At       { return a.of.At() }
func (a archiveShard) First() interlock.Index { return a.of.First() }

func (a archiveShard) LookBack(
	ctx context.Context, past *shard.Past, index interlock.Index, now engine.Time,
	look func(*engine.Engine, engine.Time) (done bool),
) (interlock.At, error) {
	return a.of.LookBack(ctx, past, index, now, look)
}

func (a archiveShard) Compare(
	ctx context.Context, past *shard.Past, first, second shard.Moment,
	look func(first, second *engine.Engine) (done bool),
) (interlock.At, interlock.Index, error) {
	return a.of.Compare(ctx, past, first, second, look)
}

func (a archiveShard) Oldest(ctx context.Context) (interlock.Index, error) { return a.of.Oldest(ctx) }

func (a archiveShard) IndexAt(ctx context.Context, t engine.Time, margin time.Duration) (interlock.Index, error) {
	return a.of.IndexAt(ctx, t, margin)
}

func (a archiveShard) Seek(ctx context.Context, t engine.Time) (interlock.Index, error) {
	return a.of.Seek(ctx, t)
}

func (a archiveShard) Follow(ctx context.Context, f shard.Follower) error { return a.of.Follow(ctx, f) }
