package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/guard/file"
	"github.com/interlockdev/interlock/internal/otlp"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/resp"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// process is a running server: its APIs, and behind them the shards that it owns.
type process struct {
	cfg         *serveConfig
	log         *slog.Logger
	started     time.Time
	credentials *server.Credentials
	certificate *server.Certificate
	authorities *server.Authorities // of other servers
	files       map[interlock.Namespace]*file.Dir

	http, grpc   net.Listener
	resp         net.Listener // nil without --resp
	respServer   *resp.Server
	front        server.Front
	doors        *doors
	memory       *memory
	desk         *shard.Desk // of the readers of the journals
	past         *shard.Past
	httpServer   *http.Server
	streamServer *server.StreamServer
	failed       chan error   // of a listener
	pusher       *otlp.Pusher // nil without --otlp-metrics
	stopPushing  func()

	tenure *leadership // of the journal in a directory
	fleet  *fleet      // of a journal in an engine
}

// startProcess opens the journal, replays it and serves both APIs; or, where servers share the
// shards, serves both APIs as a router.
func startProcess(ctx context.Context, cfg *serveConfig, log *slog.Logger) (_ *process, err error) {
	p := &process{
		cfg: cfg, log: log, started: time.Now(), failed: make(chan error, 3), memory: watchMemory(cfg.MaxMemory, log),
		desk: shard.NewDesk(0), past: shard.NewPast(),
	}
	p.preparePushing()
	if err := p.configure(cfg); err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	defer func() {
		if err != nil {
			p.abandon()
		}
	}()
	if cfg.Restore != "" {
		if err := cfg.restore(ctx, log); err != nil {
			return nil, err
		}
	}
	if cfg.place.Remote() {
		if err := p.listen(ctx, cfg); err != nil {
			return nil, err
		}
		if p.fleet, err = newFleet(p); err != nil {
			return nil, cli.ExitWith(cli.ExitUsage, err)
		}
		p.serve()
		return p, nil
	}
	j, err := openDirectory(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := p.listen(ctx, cfg); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	if p.tenure, err = openLeadership(ctx, p, 0, j, j.keeper(), cfg.Restored); err != nil {
		return nil, err
	}
	p.front.Show(p.tenure.server, p.tenure.streams)
	p.serve()
	return p, nil
}

func (p *process) configure(cfg *serveConfig) (err error) {
	if cfg.Credentials != "" {
		if p.credentials, err = server.LoadCredentials(cfg.Credentials); err != nil {
			return err
		}
	}
	if cfg.TLSCert != "" {
		if p.certificate, err = server.LoadCertificate(cfg.TLSCert, cfg.TLSKey, p.log); err != nil {
			return err
		}
	} else if public(cfg.HTTP) || public(cfg.GRPC) || cfg.RESP != "" && public(cfg.RESP) {
		p.log.Warn(
			"other machines can reach the server without TLS: credentials and purposes travel in clear text", "next",
			"set --tls-cert and --tls-key",
		)
	}
	if p.files, err = openFiles(cfg.Files, cfg.DataDir); err != nil {
		return err
	}
	var logins *server.Logins
	if cfg.UI {
		logins, err = server.NewLogins(p.credentials, cfg.hosts(), cfg.PublicURL, p.certificate != nil)
		if err != nil {
			return err
		}
	}
	disk := cfg.HookDisk || p.credentials == nil && !cfg.Insecure && cfg.PublicURL == "" && len(cfg.Hosts) == 0
	if p.doors, err = openDoors(p.front.HTTPHandler(), logins, disk, p.log); err != nil {
		return err
	}
	if cfg.Insecure && p.credentials == nil {
		p.log.Warn("no credentials are configured: every client may do everything", "flag", "--insecure")
	}
	return nil
}

// public reports whether an address is more than loopback.
func public(addr string) bool { return server.CheckListen(addr, false, false) != nil }

func (p *process) listen(ctx context.Context, cfg *serveConfig) (err error) {
	limit := cfg.MaxConnections
	if limit == 0 {
		limit = connectionsFor(mayOpen())
	}
	gate := server.NewGate(limit, p.log)
	if p.http, err = listenTCP(ctx, cfg.HTTP, gate); err != nil {
		return fmt.Errorf("--http: %w: choose another address, or stop what uses it", err)
	}
	if p.grpc, err = listenTCP(ctx, cfg.GRPC, gate); err != nil {
		return fmt.Errorf("--grpc: %w: choose another address, or stop what uses it", err)
	}
	if cfg.RESP != "" {
		if p.resp, err = listenTCP(ctx, cfg.RESP, gate); err != nil {
			return fmt.Errorf("--resp: %w: choose another address, or stop what uses it", err)
		}
	}
	return nil
}

// listenTCP listens behind a gate.
func listenTCP(ctx context.Context, addr string, gate *server.Gate) (net.Listener, error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return gate.Listener(l.(*net.TCPListener)), nil
}

// serve lets the APIs answer.
func (p *process) serve() {
	p.httpServer = p.front.HTTPServer(p.doors, p.log)
	if p.certificate != nil {
		p.httpServer.TLSConfig = p.certificate.TLSConfig()
		p.streamServer = p.front.StreamServer(p.certificate.TLSConfig())
	} else {
		p.streamServer = p.front.StreamServer(nil)
	}
	go func() {
		err := server.ServeStrict(p.httpServer, p.http)
		if !errors.Is(err, http.ErrServerClosed) {
			p.failed <- err
		}
	}()
	go func() {
		if err := p.streamServer.Serve(p.grpc); err != nil {
			p.failed <- err
		}
	}()
	if p.resp != nil {
		p.serveRESP()
	}
}

// serveRESP lets the door for clients of Redis answer.
func (p *process) serveRESP() {
	cfg := resp.Config{
		API: p.front.Server, Strip: p.cfg.RESPStrip, Test: p.cfg.RESPTest, Version: cli.Version(), Log: p.log,
	}
	if p.certificate != nil {
		cfg.TLS = p.certificate.TLSConfig()
	}
	if p.fleet != nil {
		cfg.Dial = p.fleet.forward.DialRESP
	}
	p.respServer = resp.NewServer(cfg)
	go func() {
		if err := p.respServer.Serve(p.resp); err != nil {
			p.failed <- err
		}
	}()
}

// serverConfig is what the APIs of a tenure and those of a standby have in common.
func (p *process) serverConfig() server.Config {
	cfg := server.Config{
		JournalKind: p.cfg.place.Kind, Credentials: p.credentials, Hosts: p.cfg.hosts(), Files: p.files,
		Webhooks:        server.WebhookConfig{Allow: p.cfg.WebhookAllow, PublicURL: p.cfg.PublicURL},
		MaxEventStreams: p.cfg.MaxEventStreams, MaxInFlight: p.memory.inFlight(), Version: cli.Version(), Logger: p.log,
		Desk: p.desk, Past: p.past, Started: p.started,
	}
	if p.pusher != nil {
		cfg.Process = p.pusher
	}
	return cfg
}

// hosts returns the names of the server. Other servers forward calls to the name that it advertises, which is one of
// them where names are checked at all.
func (c *serveConfig) hosts() []string {
	u, err := url.Parse(c.AdvertiseHTTP)
	if err != nil || u.Host == "" || len(c.Hosts) == 0 && c.Credentials != "" {
		return c.Hosts
	}
	return append(slices.Clone(c.Hosts), u.Host)
}

func (p *process) streamConfig() server.StreamConfig {
	return server.StreamConfig{MaxStreams: p.cfg.MaxStreams}
}

// ended is closed when the site cannot go on by itself; why is the reason.
func (p *process) ended() <-chan struct{} {
	if p.fleet != nil {
		return p.fleet.ended
	}
	return p.tenure.shard.Failed()
}

func (p *process) why() error {
	if p.fleet != nil {
		return p.fleet.err
	}
	return shardFailed(p.tenure.shard.Err())
}

// reload reads again what can be read again, and reports whether there is any. Unusable files
// leave the old state.
func (p *process) reload(log *slog.Logger) (any bool) {
	if p.credentials != nil {
		any = true
		if err := p.credentials.Reload(); err != nil {
			log.Error("the credentials stay as they were", "error", err)
		} else {
			log.Info("credentials were read again")
		}
	}
	if p.certificate != nil {
		any = true
		if err := p.certificate.Reload(); err != nil {
			log.Error("the certificate stays as it was", "error", err)
		} else {
			log.Info("the certificate was read again")
		}
	}
	if p.authorities != nil {
		any = true
		if err := p.authorities.Reload(); err != nil {
			log.Error("the authorities of other servers stay as they were", "error", err)
		} else {
			log.Info("the authorities of other servers were read again")
		}
	}
	return any
}

// shutdown stops in the order that loses no client: no more grants, clients are notified, calls
// under way are finished, the journal is closed. Calls that the limit cuts short are safe too,
// because all answers are durable.
func (p *process) shutdown(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if p.fleet != nil {
		defer p.fleet.close()
		p.fleet.leave(ctx)
	}
	if p.tenure != nil {
		p.tenure.drain(ctx)
	}
	if err := p.httpServer.Shutdown(ctx); err != nil {
		p.log.Warn("calls were cut off", "error", err)
		_ = p.httpServer.Close()
	}
	p.doors.close()
	if p.respServer != nil {
		p.respServer.Shutdown(ctx)
	}
	if p.tenure != nil {
		p.tenure.streams.Cut(&interlock.Error{
			Code:    interlock.CodeShuttingDown,
			Message: "the server has shut down: connect again in a moment; leases and places in line are kept",
		})
	}
	p.streamServer.Stop()
	p.stopPushing()
	if p.tenure != nil {
		if err := p.tenure.close(ctx, p.tenure.shard.Close); err != nil {
			return err
		}
	}
	p.log.Info("stopped")
	return nil
}

// abandon ends what there is of a server, without order: the shard has failed, or
// never came to be.
func (p *process) abandon() {
	for _, l := range []net.Listener{p.http, p.grpc, p.resp} {
		if l != nil {
			_ = l.Close()
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if p.fleet != nil {
		defer p.fleet.close()
		p.fleet.leave(ctx)
	}
	if p.tenure != nil {
		p.tenure.server.Drain() // callers with lost answers are getting the error at this moment
	}
	if p.httpServer != nil {
		short, done := context.WithTimeout(ctx, time.Second)
		_ = p.httpServer.Shutdown(short)
		done()
		p.doors.close()
		p.streamServer.Stop()
	}
	if p.respServer != nil {
		short, done := context.WithTimeout(ctx, time.Second)
		p.respServer.Shutdown(short)
		done()
	}
	p.stopPushing()
	if p.tenure != nil {
		p.tenure.abandon(ctx)
	}
}

// shardFailed returns what the end of a shard means.
func shardFailed(err error) error {
	if errors.Is(err, journal.ErrFenced) {
		return fmt.Errorf(
			"%w: this server owns the shard no longer and has stopped; its clients go to the server that took over", err,
		)
	}
	if cli.ExitCode(err) == cli.ExitFailure {
		return cli.ExitWith(cli.ExitDisk, err)
	}
	return err
}
