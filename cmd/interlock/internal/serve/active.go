package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/datadir"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
	"github.com/interlockdev/interlock/server"
)

// activeServer is how several servers over one journal take turns: each stands by until the seat
// is free, takes it, opens the journal and is the active one, until it is stopped, fenced
// or cut off. Then it stands by again.
//
//	        seat taken, journal opened
//	standby ────────────────────────────▶ active
//	   ▲                                    │
//	   └────────────────────────────────────┘
//	     fenced, seat lost, or journal failed
//
// Only the journal's epoch decides which server is heard. The seat keeps two healthy servers from
// taking the shard from each other again and again.
type activeServer struct {
	p       *process
	store   *remote.Store
	me      remote.Holder
	standby *server.Server
	streams *server.Streams
	active  atomic.Pointer[server.Active] // the holder of the seat; nil when unknown

	cancel  context.CancelFunc
	stopped chan struct{} // closed when run has ended
	seat    *remote.Seat

	ended chan struct{} // closed when no turn can be taken any more
	err   error         // why; set before ended is closed
}

// pauseAfter is how long a server lets others go first after its turn ended by a failure.
const pauseAfter = 500 * time.Millisecond

// newActiveServer makes the standby and lets it answer. Listeners are open.
func newActiveServer(p *process) (*activeServer, error) {
	store, err := p.cfg.place.Connect()
	if err != nil {
		return nil, err
	}
	t := &activeServer{
		p: p, store: store, cancel: func() {}, ended: make(chan struct{}), stopped: make(chan struct{}),
		me: remote.Holder{
			HTTP: advertised(p.cfg.AdvertiseHTTP, p.http, p.scheme()),
			GRPC: advertised(p.cfg.AdvertiseGRPC, p.grpc, ""),
		},
	}
	if t.standby, err = server.NewStandby(p.serverConfig(), t.activeAddresses); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	t.streams = server.NewStreams(t.standby, p.streamConfig())
	p.front.Show(t.standby, t.streams)
	return t, nil
}

func (p *process) scheme() string {
	if p.certificate != nil {
		return "https://"
	}
	return "http://"
}

// advertised is how others reach a listener: as the operator has set, or else at the address that
// it listens on, under this machine's name if that is every address.
func advertised(said string, l net.Listener, scheme string) string {
	if said != "" {
		return said
	}
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return scheme + l.Addr().String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return scheme + net.JoinHostPort(host, port)
}

// activeAddresses returns the active server, for clients that ask a standby.
func (t *activeServer) activeAddresses() server.Active {
	if a := t.active.Load(); a != nil {
		return *a
	}
	return server.Active{}
}

// run takes turns until stop is called or something is wrong that time does not mend. announce is
// called with each role.
func (t *activeServer) run(ctx context.Context, announce func(role string)) {
	ctx, t.cancel = context.WithCancel(ctx)
	go func() {
		defer close(t.stopped)
		announce("standby")
		for ctx.Err() == nil {
			if err := t.take(ctx, announce); err != nil {
				t.err = err
				close(t.ended)
				return
			}
		}
	}()
}

// take waits for a turn and carries it out. It returns nil when the server stands by again, or
// is stopped: then the turn continues.
func (t *activeServer) take(ctx context.Context, announce func(string)) error {
	log := t.p.log
	said := ""
	seat, err := t.store.Take(ctx, t.me, t.p.cfg.StandbyAfter, t.seen, func(err error) {
		if text := err.Error(); text != said { // it comes back twice a second
			said = text
			log.Warn("the journal's engine does not name an active server", "journal", t.p.cfg.where(), "error", err)
		}
	})
	if err != nil {
		return nil
	}
	t.seat = seat
	err = t.serveUntilLost(ctx, announce)
	if ctx.Err() != nil {
		return nil
	}
	t.active.Store(nil)
	t.p.front.Show(t.standby, t.streams)
	t.endLeadership()
	if code := cli.ExitCode(err); code == cli.ExitDamaged || code == cli.ExitNewer || code == cli.ExitUsage {
		return err
	}
	if errors.Is(err, journal.ErrLost) {
		log.Error(
			"the engine of the journal has lost acknowledged entries: leases and answers of that time may be gone; fences jump, so "+
				"no old one counts; replicate synchronously to prevent it", "error", err,
		)
	}
	log.Warn("this server stands by again", "reason", err)
	announce("standby")
	select {
	case <-time.After(pauseAfter):
	case <-ctx.Done():
	}
	return nil
}

// seen is called with the holder of the seat.
func (t *activeServer) seen(h remote.Holder) {
	t.active.Store(&server.Active{HTTP: h.HTTP, GRPC: h.GRPC})
	t.p.log.Info("standing by", "active", h.HTTP, "grpc", h.GRPC)
}

// serveUntilLost opens the journal and serves until the shard is lost, and returns why it was.
func (t *activeServer) serveUntilLost(ctx context.Context, announce func(string)) error {
	p := t.p
	began := time.Now()
	j, err := t.store.Open(ctx)
	if err != nil {
		return datadir.OpenError(p.cfg.where(), err)
	}
	p.tenure, err = openLeadership(ctx, p, j, j.Kept(fenceKeysName), p.cfg.Restored)
	if err != nil {
		return err
	}
	p.cfg.Restored = false // fences have jumped
	t.active.Store(&server.Active{HTTP: t.me.HTTP, GRPC: t.me.GRPC})
	p.front.Show(p.tenure.server, p.tenure.streams)
	p.log.Info("this server is active", "epoch", j.Epoch(), "took", time.Since(began))
	announce("active")
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.tenure.shard.Failed():
		return p.tenure.shard.Err()
	case <-t.seat.Lost():
		return fmt.Errorf("%w: it holds the seat", journal.ErrFenced)
	}
}

// endLeadership ends a turn that was lost. Its clients connect again, and find the next one.
func (t *activeServer) endLeadership() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if last := t.p.tenure; last != nil {
		last.server.Drain()
		last.streams.Cut(&interlock.Error{
			Code:    interlock.CodeNotOwner,
			Message: "this server is not the active one any more: connect again and repeat unanswered requests, with the same ids",
		})
		last.abandon(ctx)
		t.p.tenure = nil
	}
	t.seat.Leave(ctx)
	t.seat = nil
}

// stop ends the taking of turns. The role stays as it is.
func (t *activeServer) stop() {
	t.cancel()
	select {
	case <-t.stopped:
	case <-time.After(5 * time.Second):
		t.p.log.Warn("the turn does not end")
	}
}

// leave hands the seat to the next one. The journal is closed.
func (t *activeServer) leave(ctx context.Context) {
	if t.seat != nil {
		t.seat.Leave(ctx)
	}
	_ = t.store.Close()
}
