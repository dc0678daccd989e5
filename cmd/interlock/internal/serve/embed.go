package serve

import (
	"context"
	"log/slog"
	"net/http"
)

// Embedded is a server for its own process only: it listens nowhere.
type Embedded struct{ p *process }

// Embed starts a server over the journal in a directory, which it creates if it is missing. Close it.
func Embed(ctx context.Context, dir string, log *slog.Logger) (*Embedded, error) {
	cfg := &serveConfig{DataDir: dir, LogFormat: "text", level: slog.LevelWarn}
	p := &process{cfg: cfg, log: log, memory: watchMemory(0, log)}
	j, err := openDirectory(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if p.tenure, err = openLeadership(ctx, p, 0, j, j.keeper(), false); err != nil {
		return nil, err
	}
	return &Embedded{p}, nil
}

// HTTPHandler is the HTTP API.
func (e *Embedded) HTTPHandler() http.Handler { return e.p.tenure.server.HTTPHandler() }

// Failed is closed when the server cannot go on; Err returns the reason.
func (e *Embedded) Failed() <-chan struct{} { return e.p.tenure.shard.Failed() }

// Err is nil while the server can go on.
func (e *Embedded) Err() error {
	if err := e.p.tenure.shard.Err(); err != nil {
		return shardFailed(err)
	}
	return nil
}

// Close ends the server in order.
func (e *Embedded) Close(ctx context.Context) error {
	return e.p.tenure.close(ctx, e.p.tenure.shard.Close)
}
