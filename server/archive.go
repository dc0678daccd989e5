package server

import (
	"context"
	"net/http"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/shard"
)

// NewArchive is the HTTP API of a journal without a server: /v1/at answers as a server would, for any
// namespace and without bounds of time and memory. Every other call about a namespace is refused.
func NewArchive(of *shard.Archive, version string) (http.Handler, error) {
	past := shard.Unbounded()
	s, err := New(Config{
		Shard: archiveShard{noShard{elsewhere(func() Active { return Active{} })}, of, past}, Past: past, Version: version,
	})
	if err != nil {
		return nil, err
	}
	return s.HTTPHandler(), nil
}

// archiveShard is the shard of an archive.
type archiveShard struct {
	noShard
	of   *shard.Archive
	past *shard.Past
}

func (a archiveShard) At() interlock.At       { return a.of.At() }
func (a archiveShard) First() interlock.Index { return a.of.First() }

// Read sees the newest state.
func (a archiveShard) Read(
	ctx context.Context, _ interlock.Namespace, query func(*engine.Engine, engine.Time),
) (interlock.At, error) {
	return a.of.LookBack(ctx, a.past, a.At().Index, 0, func(e *engine.Engine, now engine.Time) bool {
		query(e, now)
		return true
	})
}

func (a archiveShard) LookBack(
	ctx context.Context, past *shard.Past, index interlock.Index, now engine.Time,
	look func(*engine.Engine, engine.Time) (done bool),
) (interlock.At, error) {
	return a.of.LookBack(ctx, past, index, now, look)
}

func (a archiveShard) Oldest(ctx context.Context) (interlock.Index, error) { return a.of.Oldest(ctx) }

func (a archiveShard) IndexAt(ctx context.Context, t engine.Time, margin time.Duration) (interlock.Index, error) {
	return a.of.IndexAt(ctx, t, margin)
}
