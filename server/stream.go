package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// StreamConfig bounds the session streams. The zero value works.
type StreamConfig struct {
	// MaxStreams bounds the streams of the server. 0 means 10,000.
	MaxStreams int
	// MaxOutgoing is how many answers may wait for a client that does not read.
	// Above it the stream is cut; at half of it the server stops reading from the
	// client. 0 means 32,768.
	MaxOutgoing int
	// WriteTimeout is how long a client may leave written bytes unread before the
	// stream is cut. 0 means 30 seconds.
	WriteTimeout time.Duration
	// Greeting is how long a client of Server may take to say what it wants. 0 means 10
	// seconds.
	Greeting time.Duration
	// TLS encrypts the connections of Server; nil means plain text.
	TLS *tls.Config
}

// Streams is the API for session streams: over connections (see Server), and within the
// process.
type Streams struct {
	s   *Server
	cfg StreamConfig

	mu   sync.Mutex
	open map[carrier]struct{}
}

// carrier carries the frames of one client: to the shard (stream), or to the owner of the shard (relay).
type carrier interface {
	// run returns when the client has left or was cut, with the reason.
	run() *interlock.Error
	// cut ends it. Only the first reason counts; nil means that the client left.
	cut(reason *interlock.Error)
}

// admission is a client that was let in.
type admission struct {
	carrier
	identity Identity
	d        *Streams // counts it
}

func (a *admission) serve() *interlock.Error {
	defer a.forget()
	return a.run()
}

func (a *admission) forget() {
	a.d.mu.Lock()
	defer a.d.mu.Unlock()
	delete(a.d.open, a.carrier)
}

// NewStreams returns the session streams of a server. Server.Drain tells its clients to come
// back later, and leaves them connected: releases still work.
func NewStreams(s *Server, cfg StreamConfig) *Streams {
	if cfg.MaxStreams <= 0 {
		cfg.MaxStreams = 10_000
	}
	if cfg.MaxOutgoing <= 0 {
		cfg.MaxOutgoing = 32_768
	}
	if cfg.WriteTimeout <= 0 {
		cfg.WriteTimeout = 30 * time.Second
	}
	d := &Streams{s: s, cfg: cfg, open: map[carrier]struct{}{}}
	if shard, ok := s.shard.(interface{ OnReset(func()) }); ok {
		shard.OnReset(func() {
			d.Cut(&interlock.Error{
				Code:    interlock.CodeOutcomeUnknown,
				Message: "the server restarted: connect again and repeat the unanswered requests",
			})
		})
	}
	s.obs.leavers.add(d.leave)
	return d
}

// Dial connects a client in the same process. It is a client.Dialer.
func (d *Streams) Dial(_ context.Context, hello proto.Hello) (proto.ClientLink, error) {
	theirs, ours := proto.Pipe()
	st, err := d.begin(ours, hello)
	if err != nil {
		return nil, err
	}
	go st.serve()
	return theirs, nil
}

// Cut ends all streams. The clients connect again at once.
func (d *Streams) Cut(reason *interlock.Error) {
	d.cutThose(func(carrier) bool { return true }, reason)
}

// cutThose ends the streams that are meant.
func (d *Streams) cutThose(meant func(carrier) bool, reason *interlock.Error) {
	d.mu.Lock()
	var list []carrier
	for c := range d.open {
		if meant(c) {
			list = append(list, c)
		}
	}
	d.mu.Unlock()
	for _, c := range list {
		c.cut(reason)
	}
}

// begin authenticates a client and admits its stream; the caller serves it.
func (d *Streams) begin(link proto.ServerLink, hello proto.Hello) (*admission, error) {
	identity, err := d.s.Authenticate(hello.Credential)
	if err != nil {
		return nil, err
	}
	namespace, err := identity.Resolve(string(hello.Namespace))
	if err != nil {
		return nil, err
	}
	if d.s.directory == nil {
		return d.admit(newStream(d, link, namespace, identity), identity)
	}
	switch at := d.s.directory.Locate(namespace); {
	case at.Streams != nil:
		return at.Streams.admit(newStream(at.Streams, link, namespace, identity), identity)
	case d.s.forward != nil && at.Active.GRPC != "" && !hello.Forwarded:
		if at.silentFor(reachTimeout) {
			return nil, ownerSilent(at.Active)
		}
		owner, err := d.s.forward.dial(d.s.serving, at, hello)
		if _, refused := errors.AsType[*interlock.Error](err); err != nil && !refused {
			d.s.log.Debug("the owner of the shard cannot be reached", "grpc", at.Active.GRPC, "error", err)
			err = ownerSilent(at.Active)
		}
		if err != nil {
			return nil, err
		}
		d.s.obs.figures.forwarded.WithLabelValues("stream").Inc()
		st, err := d.admit(&relay{
			client: link, owner: owner, at: at, count: d.s.obs.figures.relayed, trips: &d.s.forward.trips,
		}, identity)
		if err != nil {
			owner.Close(nil)
		}
		return st, err
	default:
		return nil, notOwner(at.Active)
	}
}

// admit counts a client, unless there are too many.
func (d *Streams) admit(c carrier, identity Identity) (*admission, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.open) >= d.cfg.MaxStreams {
		return nil, &interlock.Error{
			Code: interlock.CodeTooManyStreams,
			Message: fmt.Sprintf(
				"the server has reached its limit of %d streams: share one stream among the agents of a process, or connect "+
					"again later",
				d.cfg.MaxStreams,
			),
		}
	}
	d.open[c] = struct{}{}
	return &admission{carrier: c, identity: identity, d: d}, nil
}
