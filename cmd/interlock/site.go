package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/file"
	"github.com/interlockdev/interlock/guard/signed"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// fenceJump is how far fences jump when the journal may lack entries that were
// written elsewhere. A shard that gives a million leases a second needs twelve days
// for as many, and there is room for sixteen million such jumps.
const fenceJump = 1 << 40

// site is everything of a running server.
type site struct {
	log         *slog.Logger
	credentials *server.Credentials
	certificate *server.Certificate
	observer    *server.Observer
	fences      *signed.Ring
	shard       *shard.Shard
	server      *server.Server
	streams     *server.Streams
	files       map[interlock.Namespace]*file.Dir

	http, grpc net.Listener
	httpServer *http.Server
	grpcServer *grpc.Server
	failed     chan error // of a listener
}

// startSite opens the journal, replays it and serves both doors.
func startSite(ctx context.Context, cfg *serveConfig, log *slog.Logger) (_ *site, err error) {
	p := &site{log: log, failed: make(chan error, 2)}
	if err := p.configure(cfg); err != nil {
		return nil, exitWith(exitUsage, err)
	}
	j, err := filejournal.Open(ctx, cfg.DataDir, filejournal.Options{SegmentBytes: cfg.SegmentBytes})
	if err != nil {
		return nil, openFailed(cfg.DataDir, err)
	}
	defer func() {
		if err != nil {
			p.abandon()
			if p.shard == nil {
				err = errors.Join(err, j.Close())
			}
		}
	}()
	if err := p.listen(ctx, cfg); err != nil {
		return nil, err
	}
	if err := p.open(ctx, cfg, j); err != nil {
		return nil, err
	}
	if err := p.doors(cfg); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *site) configure(cfg *serveConfig) (err error) {
	if cfg.Credentials != "" {
		if p.credentials, err = server.LoadCredentials(cfg.Credentials); err != nil {
			return err
		}
	}
	if cfg.TLSCert != "" {
		if p.certificate, err = server.LoadCertificate(cfg.TLSCert, cfg.TLSKey, p.log); err != nil {
			return err
		}
	} else if public(cfg.HTTP) || public(cfg.GRPC) {
		p.log.Warn("the server can be reached from other machines without TLS: credentials and purposes travel in clear text", "next", "give --tls-cert and --tls-key")
	}
	if p.files, err = openFiles(cfg.Files, cfg.DataDir); err != nil {
		return err
	}
	if cfg.Insecure && p.credentials == nil {
		p.log.Warn("there are no credentials: whoever reaches the server may do everything", "flag", "--insecure")
	}
	return nil
}

// public reports whether an address is more than loopback.
func public(addr string) bool { return server.CheckListen(addr, false, false) != nil }

func (p *site) listen(ctx context.Context, cfg *serveConfig) (err error) {
	var listen net.ListenConfig
	if p.http, err = listen.Listen(ctx, "tcp", cfg.HTTP); err != nil {
		return fmt.Errorf("--http: %w: choose another address, or stop what uses it", err)
	}
	if p.grpc, err = listen.Listen(ctx, "tcp", cfg.GRPC); err != nil {
		return fmt.Errorf("--grpc: %w: choose another address, or stop what uses it", err)
	}
	return nil
}

// fenceKeysName is the file of the data directory with the keys that sign fences.
const fenceKeysName = "fence-keys.json"

// open makes the shard, and lets fences jump where the journal is a copy. A copy also
// gets keys of its own: signed by it, a fence that has jumped would lock out the
// original's holders.
func (p *site) open(ctx context.Context, cfg *serveConfig, j *filejournal.Journal) (err error) {
	p.observer = server.NewObserver(p.log)
	jump := uint64(0)
	if copied := j.Copied(); copied || cfg.Restored {
		jump = fenceJump
		p.log.Warn("the journal is a copy or was restored: fences jump ahead, so that none is given out twice", "copied", copied, "jump", jump)
	}
	if p.fences, err = signed.OpenRing(filepath.Join(cfg.DataDir, fenceKeysName), jump > 0); err != nil {
		return err
	}
	p.shard, err = shard.Open(ctx, shard.Config{
		Journal: j, Logger: p.log, Observer: p.observer, FenceJump: jump,
		SnapshotBytes: cfg.SnapshotBytes, KeepBytes: cfg.KeepBytes, MaxWaiting: cfg.MaxWaiting,
	})
	if err != nil {
		return replayFailed(err)
	}
	if j.Copied() {
		// Only now is the jump durable.
		if err := j.Adopt(); err != nil {
			return fmt.Errorf("the copied journal cannot be adopted: %w", err)
		}
	}
	return nil
}

func (p *site) doors(cfg *serveConfig) (err error) {
	p.server, err = server.New(server.Config{
		Shard: p.shard, Observer: p.observer, Credentials: p.credentials, Fences: p.fences, Hosts: cfg.Hosts,
		Files: p.files, MaxEventStreams: cfg.MaxEventStreams, Version: version(), Logger: p.log,
	})
	if err != nil {
		return exitWith(exitUsage, err)
	}
	streams := server.StreamConfig{MaxStreams: cfg.MaxStreams}
	p.httpServer = p.server.HTTPServer()
	if p.certificate != nil {
		p.httpServer.TLSConfig = p.certificate.TLSConfig()
		streams.TLS = p.certificate.TLSConfig()
	}
	p.streams = server.NewStreams(p.server, streams)
	p.grpcServer = p.streams.GRPCServer()
	go func() {
		err := error(nil)
		if p.certificate != nil {
			err = p.httpServer.ServeTLS(p.http, "", "")
		} else {
			err = p.httpServer.Serve(p.http)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			p.failed <- err
		}
	}()
	go func() {
		if err := p.grpcServer.Serve(p.grpc); err != nil {
			p.failed <- err
		}
	}()
	return nil
}

// reload reads again what can be read again, and reports whether there is any.
// What cannot be used stays as it was.
func (p *site) reload() (any bool) {
	if p.credentials != nil {
		any = true
		if err := p.credentials.Reload(); err != nil {
			p.log.Error("the credentials stay as they were", "error", err)
		} else {
			p.log.Info("credentials were read again")
		}
	}
	if p.certificate != nil {
		any = true
		if err := p.certificate.Reload(); err != nil {
			p.log.Error("the certificate stays as it was", "error", err)
		} else {
			p.log.Info("the certificate was read again")
		}
	}
	return any
}

// shutdown stops in the order that loses nobody: no more grants, clients are told,
// calls under way are finished, the journal is closed. What the limit cuts short is
// safe too, because whatever was answered is durable.
func (p *site) shutdown(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p.server.Drain()
	if err := p.shard.Drain(ctx); err != nil {
		p.log.Warn("the shard could not be drained", "error", err)
	}
	if err := p.httpServer.Shutdown(ctx); err != nil {
		p.log.Warn("calls were cut off", "error", err)
		_ = p.httpServer.Close()
	}
	p.streams.Cut(&interlock.Error{Code: interlock.CodeShuttingDown, Message: "the server has shut down: connect again in a moment; leases and places in line are kept"})
	p.grpcServer.Stop()
	err := p.shard.Close(ctx)
	p.observer.Close()
	if err != nil {
		if p.shard.Err() != nil {
			return shardFailed(p.shard.Err())
		}
		return fmt.Errorf("the server did not stop in order: %w", err)
	}
	p.log.Info("stopped")
	return nil
}

// abandon ends what there is of a server, without order: the shard has failed, or
// never came to be.
func (p *site) abandon() {
	for _, l := range []net.Listener{p.http, p.grpc} {
		if l != nil {
			_ = l.Close()
		}
	}
	if p.streams != nil {
		p.server.Drain()
		// Those whose answers are lost are being told so at this moment.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.httpServer.Shutdown(ctx)
		p.grpcServer.Stop()
	}
	if p.shard != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.shard.Close(ctx)
	}
	if p.observer != nil {
		p.observer.Close()
	}
}

// openFailed adds the next step to an error of the journal.
func openFailed(dir string, err error) error {
	var damage *journal.DamageError
	switch {
	case errors.As(err, &damage):
		return fmt.Errorf("%w; nothing was changed: run `interlock journal verify %s`, restore a backup with --restored, or ask for help with the files", err, quote(dir))
	case errors.Is(err, journal.ErrNewer):
		return fmt.Errorf("%w: start that version or a later one", err)
	case errors.Is(err, journal.ErrNoSpace):
		return fmt.Errorf("%w: make room on the disk of %s, then start the server again", err, dir)
	}
	return err
}

// replayFailed says what an error of opening the shard means. What was read from
// the journal was what had been written, so that it cannot be replayed is damage
// all the same.
func replayFailed(err error) error {
	if code := exitCode(err); code != exitFailure || errors.Is(err, context.Canceled) {
		return err
	}
	return exitWith(exitDamaged, err)
}

// shardFailed says what the end of a shard means.
func shardFailed(err error) error {
	if errors.Is(err, journal.ErrFenced) {
		return fmt.Errorf("%w: this server owns the shard no longer and has stopped; its clients go to the server that took over", err)
	}
	if exitCode(err) == exitFailure {
		return exitWith(exitDisk, err)
	}
	return err
}
