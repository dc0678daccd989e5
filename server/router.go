package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/shard"
	"github.com/interlockdev/interlock/webhook"
)

// Active is the addresses of the server that owns a shard. It is empty when unknown.
type Active struct {
	HTTP string // a URL
	GRPC string // host:port
	RESP string // host:port; "" without the door for clients of Redis
}

// Peer is a server over the same journal.
type Peer struct {
	ID       string // new with each start
	Active   Active
	Version  string
	Weight   int
	Draining bool
	// Unreached is since when it does not answer this server; zero if it does. UnreachedBy is how many servers say so
	// in the table.
	Unreached   time.Time
	UnreachedBy int
	// Silent is for how long the table of servers has shown no sign of life of it; 0 if it does.
	Silent time.Duration
}

// Location is where the calls of a shard are answered: here if Server is set, and otherwise by the server
// that Active names.
type Location struct {
	Shard   int
	Owner   string // the ID of the peer that has it; "" without one
	Server  *Server
	Streams *Streams
	Active  Active // the owner's addresses; empty when none is known
	// Unreached is since when the owner does not answer this server; zero if it does.
	Unreached time.Time
}

// silentFor reports whether the owner has not answered this server for so long.
func (at *Location) silentFor(d time.Duration) bool {
	return !at.Unreached.IsZero() && time.Since(at.Unreached) >= d
}

// Directory finds the owners of shards. Its methods may be called by any number of goroutines, and answer
// from memory: a location may be out of date, and then the call is refused where it arrives.
type Directory interface {
	// Locate finds the shard of a namespace.
	Locate(interlock.Namespace) Location
	// Locations lists all shards by their numbers.
	Locations() []Location
	// Peers lists the servers, this one among them.
	Peers() []Peer
}

// NewRouter makes the APIs of a server in front of shards, here and elsewhere. It authenticates a
// caller and finds the shard of its namespace. A shard of this process answers the call itself; a call of
// another one goes to its owner by way of Config.Forward, once: a forwarded call that arrives at a server that
// is not the owner is refused with not_owner, as all calls are without Config.Forward. The server's own paths
// (/healthz, /readyz, /metrics, /openapi.json) answer for this process. Config.Shard is not used.
func NewRouter(cfg Config, directory Directory) (*Server, error) {
	if directory == nil {
		return nil, errors.New("server: a router needs a directory of shards")
	}
	cfg.Shard = noShard{directory}
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	s.directory, s.forward, s.operations = directory, cfg.Forward, cfg.Operations
	return s, nil
}

// NewStandby makes a router of one shard, which another server owns: the one that where returns at that
// moment. It forwards nothing.
func NewStandby(cfg Config, where func() Active) (*Server, error) {
	if where == nil {
		return nil, errors.New("server: a standby needs the address of the active server")
	}
	cfg.Forward = nil
	return NewRouter(cfg, elsewhere(where))
}

// elsewhere is the directory of one shard that is never here.
type elsewhere func() Active

func (e elsewhere) Locate(interlock.Namespace) Location { return Location{Active: e()} }
func (e elsewhere) Locations() []Location               { return []Location{{Active: e()}} }
func (e elsewhere) Peers() []Peer                       { return nil }

// toOwner finds the server of this process that answers a call. It is nil when the call was answered: by the
// shard's owner, or with a refusal.
func (c *call) toOwner(rt *route) *Server {
	for again := true; again; {
		at := c.s.directory.Locate(c.routedBy(rt))
		if rt == byPath[backupPath] {
			var ok bool
			if at, ok = c.shardToBackUp(); !ok {
				return nil
			}
		}
		switch {
		case at.Server != nil:
			return at.Server
		case at.silentFor(reachTimeout):
			c.fail(ownerSilent(at.Active)) // at once: another attempt would cost the caller as long
			return nil
		case c.s.forward != nil && at.Active.HTTP != "" && c.r.Header.Get(hopsHeader) == "":
			again = c.s.forward.forwardCall(c, at)
		default:
			c.active = at.Active
			c.fail(notOwner(at.Active))
			return nil
		}
	}
	return nil
}

// shardToBackUp returns the shard that a backup is of. A backup is of one shard, so a caller that does not name
// one of several is refused: it might take the backup for one of all. ok is false when the call was answered.
func (c *call) shardToBackUp() (at Location, ok bool) {
	if !c.allowed(mayBackUp) || !c.parseQuery([]string{"shard"}) {
		return at, false
	}
	locations := c.s.directory.Locations()
	if !c.query.Has("shard") && len(locations) > 1 {
		c.refuse(interlock.CodeInvalidRequest, fmt.Sprintf(
			"the journal has %d shards: back up each one with the parameter shard, as interlock admin backup --to DIR does",
			len(locations),
		))
		return at, false
	}
	n, ok := c.intParam("shard", 0, 0, maxShard)
	if !ok {
		return at, false
	}
	if n >= int64(len(locations)) {
		c.noShard(n)
		return at, false
	}
	return locations[n], true
}

// routedBy returns the namespace that a call is about.
func (c *call) routedBy(rt *route) interlock.Namespace {
	switch rt {
	case &approveRoute:
		return webhook.LinkNamespace(c.variable)
	case byPath[namespacePath]:
		if name, err := url.PathUnescape(c.variable); err == nil {
			return interlock.Namespace(name)
		}
	}
	return c.namespace
}

// here lists the servers of the shards that this process owns.
func here(d Directory) (list []*Server) {
	for _, at := range d.Locations() {
		if at.Server != nil {
			list = append(list, at.Server)
		}
	}
	return list
}

// notOwner is the answer of a server that does not own the shard.
func notOwner(a Active) *interlock.Error {
	err := &interlock.Error{Code: interlock.CodeNotOwner, Advice: prose.ForCode(interlock.CodeNotOwner)}
	if a == (Active{}) {
		err.Message = "no server that answers owns the shard at the moment"
		return err
	}
	err.Message = fmt.Sprintf("this server does not own the shard; the active one is %s (gRPC %s)", a.HTTP, a.GRPC)
	err.Advice.Message = "repeat the request with the same request id at the active server"
	return err
}

// noShard is the shard of a router.
type noShard struct{ directory Directory }

func (e noShard) refusal() error {
	return notOwner(e.directory.Locate(interlock.DefaultNamespace).Active)
}

func (e noShard) Submit(...engine.Command) error  { return e.refusal() }
func (e noShard) Execute(...engine.Command) error { return e.refusal() }
func (e noShard) Came() uint64                    { return 0 }

func (e noShard) Do(context.Context, engine.Command) (engine.Effect, interlock.At, error) {
	return engine.Effect{}, interlock.At{}, e.refusal()
}

func (e noShard) Read(
	context.Context, interlock.Namespace, func(*engine.Engine, engine.Time),
) (interlock.At, error) {
	return interlock.At{}, e.refusal()
}

func (e noShard) Survey(
	context.Context, interlock.Namespace, func(*engine.Engine, engine.Time) bool,
) (interlock.At, error) {
	return interlock.At{}, e.refusal()
}

func (e noShard) Condition(context.Context) (shard.Condition, interlock.At, error) {
	return shard.Condition{}, interlock.At{}, e.refusal()
}

func (e noShard) Seek(context.Context, engine.Time) (interlock.Index, error) {
	return 0, e.refusal()
}

func (e noShard) LookBack(
	context.Context, *shard.Past, interlock.Index, engine.Time, func(*engine.Engine, engine.Time) bool,
) (interlock.At, error) {
	return interlock.At{}, e.refusal()
}

func (e noShard) Compare(
	context.Context, *shard.Past, shard.Moment, shard.Moment, func(first, second *engine.Engine) bool,
) (interlock.At, interlock.Index, error) {
	return interlock.At{}, 0, e.refusal()
}

func (e noShard) Oldest(context.Context) (interlock.Index, error) { return 0, e.refusal() }

func (e noShard) IndexAt(context.Context, engine.Time, time.Duration) (interlock.Index, error) {
	return 0, e.refusal()
}

func (e noShard) Follow(context.Context, shard.Follower) error { return e.refusal() }

func (e noShard) Head(context.Context) (string, interlock.At, error) {
	return "", interlock.At{}, e.refusal()
}

func (e noShard) Backup(context.Context) (*shard.Backup, error) { return nil, e.refusal() }

func (e noShard) OnReset(func())          {} // there is nothing to forget
func (e noShard) At() interlock.At        { return interlock.At{} }
func (e noShard) First() interlock.Index  { return 0 }
func (e noShard) Failed() <-chan struct{} { return nil }
func (e noShard) Err() error              { return nil }
