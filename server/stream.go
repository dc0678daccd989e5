package server

import (
	"context"
	"crypto/tls"
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
	open map[*stream]struct{}
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
	d := &Streams{s: s, cfg: cfg, open: map[*stream]struct{}{}}
	if shard, ok := s.shard.(interface{ OnReset(func()) }); ok {
		shard.OnReset(func() {
			d.Cut(&interlock.Error{
				Code:    interlock.CodeOutcomeUnknown,
				Message: "the server restarted: connect again and repeat the unanswered requests",
			})
		})
	}
	return d
}

// Dial connects a client in the same process. It is a client.Dialer.
func (d *Streams) Dial(_ context.Context, hello proto.Hello) (proto.ClientLink, error) {
	theirs, ours := proto.Pipe()
	st, err := d.begin(ours, hello)
	if err != nil {
		return nil, err
	}
	go d.serve(st)
	return theirs, nil
}

// Cut ends all streams. The clients connect again at once.
func (d *Streams) Cut(reason *interlock.Error) {
	d.mu.Lock()
	all := make([]*stream, 0, len(d.open))
	for st := range d.open {
		all = append(all, st)
	}
	d.mu.Unlock()
	for _, st := range all {
		st.cut(reason)
	}
}

// begin authenticates a client and admits its stream; the caller serves it.
func (d *Streams) begin(link proto.ServerLink, hello proto.Hello) (*stream, error) {
	identity, err := d.s.Authenticate(hello.Credential)
	if err != nil {
		return nil, err
	}
	namespace, err := identity.Resolve(string(hello.Namespace))
	if err != nil {
		return nil, err
	}
	if d.s.standby != nil {
		return nil, notOwner(d.s.standby())
	}
	st := newStream(d, link, namespace, identity)
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
	d.open[st] = struct{}{}
	return st, nil
}

func (d *Streams) serve(st *stream) *interlock.Error {
	defer d.forget(st)
	return st.run()
}

func (d *Streams) forget(st *stream) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, st)
}
