package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cluster"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/cmd/interlock/internal/datadir"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
	"github.com/interlockdev/interlock/placement"
	"github.com/interlockdev/interlock/server"
)

// fleet is this server among the servers over one journal: the shards that it owns, and where the others
// are. Its router answers all calls.
//
//	               ┌─ shard 0 (leadership)
//	front ─► router┼─ shard 7 (leadership)
//	               └─ forwarded to the owner of any other
//
// Only a journal's epoch decides which server is heard. Seats keep healthy servers from taking shards from
// each other again and again.
type fleet struct {
	p       *process
	store   *remote.Store            // of shard 0
	stores  map[string]*remote.Store // of more shards, by their names
	forward *server.Forwarder
	router  *server.Server
	streams *server.Streams
	node    atomic.Pointer[cluster.Node] // nil until the directory of shards was read

	cancel  context.CancelFunc
	stopped chan struct{} // closed when run has ended

	mu       sync.Mutex // guards the fields below
	role     string     // as it was announced
	stopping bool
	jumped   map[int]bool // the shards after their jump by --restored

	ended chan struct{} // closed when this server can own no shard any more
	err   error         // why; set before ended is closed
}

// defaultShards is how many shards a journal in an engine is made with.
const defaultShards = 16

// settle is how long the first server of a journal waits for a restore that was started beside it.
const settle = time.Second

// joinPause is the time between two attempts to read the directory of shards.
const joinPause = 500 * time.Millisecond

// newFleet makes the router and lets it answer. Listeners are open.
func newFleet(p *process) (*fleet, error) {
	store, err := p.cfg.place.Connect()
	if err != nil {
		return nil, err
	}
	f := &fleet{
		p: p, store: store, cancel: func() {}, ended: make(chan struct{}), stopped: make(chan struct{}),
		jumped: map[int]bool{}, stores: map[string]*remote.Store{},
	}
	for name, place := range p.cfg.stores {
		if f.stores[name], err = place.Connect(); err != nil {
			return nil, errors.Join(err, f.closeStores())
		}
	}
	if p.cfg.PeerCA != "" {
		if p.authorities, err = server.LoadAuthorities(p.cfg.PeerCA, p.log); err != nil {
			return nil, errors.Join(fmt.Errorf("--peer-ca: %w", err), f.closeStores())
		}
	}
	f.forward = server.NewForwarder(p.peerSecurity(), p.authorities)
	f.forward.Suspect = func(http string) {
		if n := f.node.Load(); n != nil {
			n.Suspect(http)
		}
	}
	f.forward.Woken = func() {
		if n := f.node.Load(); n != nil {
			n.Look()
		}
	}
	cfg := p.serverConfig()
	cfg.Forward, cfg.Operations = f.forward, f
	if f.router, err = server.NewRouter(cfg, f); err != nil {
		return nil, errors.Join(err, f.closeStores())
	}
	f.streams = server.NewStreams(f.router, p.streamConfig())
	p.front.Show(f.router, f.streams)
	return f, nil
}

// peerSecurity returns how calls to other servers are encrypted; nil without TLS.
func (p *process) peerSecurity() *tls.Config {
	if p.certificate == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: p.cfg.PeerName}
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

// advertisedRESP is where others reach the door for clients of Redis: at the host of the session streams.
func advertisedRESP(l net.Listener, grpc string) string {
	host, _, failed := net.SplitHostPort(grpc)
	_, port, err := net.SplitHostPort(l.Addr().String())
	if failed != nil || err != nil {
		return l.Addr().String()
	}
	return net.JoinHostPort(host, port)
}

// Locate implements server.Directory.
func (f *fleet) Locate(namespace interlock.Namespace) server.Location {
	if n := f.node.Load(); n != nil {
		v := n.View()
		return locate(v, v.Directory.Shard(string(namespace)))
	}
	return server.Location{}
}

// Locations implements server.Directory.
func (f *fleet) Locations() []server.Location {
	n := f.node.Load()
	if n == nil {
		return []server.Location{{}}
	}
	v := n.View()
	list := make([]server.Location, len(v.Holders))
	for s := range list {
		list[s] = locate(v, s)
	}
	return list
}

// Peers implements server.Directory.
func (f *fleet) Peers() (list []server.Peer) {
	n := f.node.Load()
	if n == nil {
		return nil
	}
	v := n.View()
	by := map[string]int{}
	for _, m := range v.Members {
		for _, id := range m.Unreached {
			by[id]++
		}
	}
	for _, m := range v.Members {
		list = append(list, server.Peer{
			ID: m.ID, Active: server.Active{HTTP: m.HTTP, GRPC: m.GRPC}, Version: m.Version,
			Weight: max(1, int(m.Weight)), Draining: m.Draining, Unreached: v.Unreached[m.ID], UnreachedBy: by[m.ID],
			Silent: v.Silent(m.ID, time.Now()),
		})
	}
	return list
}

func locate(v *cluster.View, s int) server.Location {
	at := server.Location{Shard: s}
	if v.Holders[s] != nil {
		at.Owner = v.Holders[s].ID
	}
	if l, ok := v.Owned[s].(*leadership); ok {
		at.Server, at.Streams = l.server, l.streams
	} else if m := v.Holders[s]; m != nil && m.ID != v.Me && m.HTTP != v.Address {
		at.Active = server.Active{HTTP: m.HTTP, GRPC: m.GRPC, RESP: m.RESP}
		at.Unreached = v.Unreached[m.ID]
	}
	return at
}

// run takes part until stop is called or something is wrong that time does not mend. announce is
// called with each role.
func (f *fleet) run(ctx context.Context, announce func(role string)) {
	ctx, f.cancel = context.WithCancel(ctx)
	f.role = "standby"
	announce(f.role)
	go func() {
		defer close(f.stopped)
		node, err := f.join(ctx, announce)
		if err == nil {
			f.node.Store(node)
			err = node.Run(ctx)
		}
		if err != nil && ctx.Err() == nil {
			f.err = err
			close(f.ended)
		}
	}()
}

// join reads or makes the directory of shards, for as long as that takes.
func (f *fleet) join(ctx context.Context, announce func(string)) (*cluster.Node, error) {
	for {
		node, err := cluster.Join(ctx, f.config(announce), func(ctx context.Context) (int, error) {
			empty, err := f.store.Empty(ctx)
			switch {
			case err != nil:
				return 0, err
			case !empty:
				return 1, nil // it is older than the directory, or was moved from a directory
			case f.p.cfg.Shards > 0:
				return f.p.cfg.Shards, nil
			}
			return defaultShards, nil
		})
		if err == nil {
			return node, nil
		}
		if err = datadir.OpenError(f.p.cfg.where(), err); f.fatal(err) {
			return nil, err
		}
		if ctx.Err() == nil {
			f.p.log.Warn("the directory of shards cannot be read", "journal", f.p.cfg.where(), "error", err)
		}
		select {
		case <-time.After(joinPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (f *fleet) config(announce func(string)) cluster.Config {
	p := f.p
	me := cluster.Member{
		Member:  placement.Member{Weight: uint32(p.cfg.Weight), Reads: record.Format},
		HTTP:    advertised(p.cfg.AdvertiseHTTP, p.http, p.scheme()),
		GRPC:    advertised(p.cfg.AdvertiseGRPC, p.grpc, ""),
		Version: cli.Version(),
	}
	if p.resp != nil {
		me.RESP = advertisedRESP(p.resp, me.GRPC)
	}
	return cluster.Config{
		Me: me, Writes: record.UsualFormat, TTL: p.cfg.StandbyAfter, Settle: settle,
		Directory: f.store.Shared(cluster.DirectoryName), Table: f.store.Shared(cluster.ServersName),
		Open: f.own, Fatal: f.fatal, Probe: f.probe, Wake: f.wake,
		Changed: func(v *cluster.View) { f.changed(v, announce) }, Logger: p.log,
	}
}

func (f *fleet) probe(ctx context.Context, m cluster.Member) error {
	return f.forward.Probe(ctx, server.Active{HTTP: m.HTTP, GRPC: m.GRPC})
}

func (f *fleet) wake(ctx context.Context, m cluster.Member) {
	if err := f.forward.Wake(ctx, server.Active{HTTP: m.HTTP}); err != nil && ctx.Err() == nil {
		f.p.log.Debug("another server was not told of a change: it sees it half a second later", "http", m.HTTP, "error", err)
	}
}

// fatal reports whether an error of opening a journal will not pass by itself.
func (f *fleet) fatal(err error) bool {
	code := cli.ExitCode(err)
	return code == cli.ExitDamaged || code == cli.ExitNewer || code == cli.ExitUsage || code == cli.ExitFilling
}

// own makes this server the owner of a shard.
func (f *fleet) own(ctx context.Context, shard int) (cluster.Owned, error) {
	p := f.p
	began := time.Now()
	store, err := f.sibling(shard)
	if err != nil {
		return nil, err
	}
	j, err := store.Open(ctx)
	if err != nil {
		return nil, datadir.OpenError(p.cfg.where(), err)
	}
	f.mu.Lock()
	restored := p.cfg.Restored && !f.jumped[shard]
	f.mu.Unlock()
	l, err := openLeadership(ctx, p, shard, j, j.Kept(fenceKeysName), restored)
	if err != nil {
		return nil, err
	}
	l.sibling = f.sibling
	f.mu.Lock()
	f.jumped[shard] = true
	f.mu.Unlock()
	p.log.Info("this server is active", "shard", shard, "epoch", j.Epoch(), "took", time.Since(began))
	return l, nil
}

// sibling returns the store of a shard.
func (f *fleet) sibling(shard int) (*remote.Store, error) {
	if shard == 0 {
		return f.store, nil
	}
	name, from := "", f.store
	if n := f.node.Load(); n != nil {
		name = n.View().Directory.Store(shard)
	}
	if name != "" {
		if from = f.stores[name]; from == nil {
			return nil, cli.Usagef("shard %d is in store %s: start the server with --store %s=URL", shard, name, name)
		}
	}
	return from.Shard(shard), nil
}

// shards returns the number of shards of the journal, as far as it is known.
func (f *fleet) shards() int {
	if n := f.node.Load(); n != nil {
		return n.View().Directory.All()
	}
	return 1
}

func (f *fleet) closeStores() error {
	err := f.store.Close()
	for _, s := range f.stores {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}

// Failed implements cluster.Owned.
func (t *leadership) Failed() <-chan struct{} { return t.shard.Failed() }

// Err implements cluster.Owned.
func (t *leadership) Err() error { return t.shard.Err() }

// Leave implements cluster.Owned. Clients connect again, and find the next owner.
func (t *leadership) Leave(ctx context.Context) {
	t.drain(ctx)
	t.streams.Cut(&interlock.Error{
		Code:    interlock.CodeShuttingDown,
		Message: "the shard moves to another server: connect again in a moment; leases and places in line are kept",
	})
	if err := t.close(ctx, t.shard.HandOver); err != nil {
		t.log.Warn("a shard was not left in order", "error", err)
	}
}

// Abandon implements cluster.Owned.
func (t *leadership) Abandon(ctx context.Context) {
	if errors.Is(t.shard.Err(), journal.ErrLost) {
		t.log.Error(
			"the engine of the journal has lost acknowledged entries: leases and answers of that time may be gone; fences jump, so "+
				"no old one counts; replicate synchronously to prevent it", "error", t.shard.Err(),
		)
	}
	t.server.Drain()
	t.streams.Cut(&interlock.Error{
		Code:    interlock.CodeNotOwner,
		Message: "this server is not the active one any more: connect again and repeat unanswered requests, with the same ids",
	})
	t.abandon(ctx)
}

// changed announces this server's role.
func (f *fleet) changed(v *cluster.View, announce func(string)) {
	owned, reached := 0, true
	list := make([]server.Location, len(v.Owned))
	for s := range v.Owned {
		at := locate(v, s)
		list[s] = at
		if at.Server != nil {
			owned++
		}
		reached = reached && (at.Server != nil || at.Active.HTTP != "")
	}
	f.forward.Follow(list)
	f.mu.Lock()
	defer f.mu.Unlock()
	role := f.role
	switch {
	case owned == 0:
		role = "standby"
	case reached:
		role = "active"
	}
	if role == f.role || f.stopping {
		return
	}
	f.role = role
	announce(role)
}

// leave frees all shards, and returns when other servers can take them.
func (f *fleet) leave(ctx context.Context) {
	f.mu.Lock()
	f.stopping = true
	f.mu.Unlock()
	f.router.Drain()
	if n := f.node.Load(); n != nil {
		if err := n.Drain(ctx); err != nil {
			f.p.log.Warn("other servers do not know yet that this one has stopped", "error", err)
		}
	}
	f.stop()
}

// stop ends the part that this server takes.
func (f *fleet) stop() {
	f.cancel()
	select {
	case <-f.stopped:
	case <-time.After(5 * time.Second):
		f.p.log.Warn("the exchange with other servers does not end")
	}
}

// close ends the connections. Nothing answers any more.
func (f *fleet) close() {
	f.forward.Close()
	_ = f.closeStores()
}
