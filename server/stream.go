package server

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"google.golang.org/grpc"

	"github.com/interlockdev/interlock/proto"
)

// StreamConfig bounds the session streams. The zero value works.
type StreamConfig struct {
	// MaxStreams bounds the streams of the server. 0 means 10,000.
	MaxStreams int
	// MaxOutgoing is how many answers may wait for a client that does not read.
	// Above it the stream is cut. 0 means 65,536.
	MaxOutgoing int
	// WriteTimeout is how long a client may leave written bytes unread before the
	// stream is cut. 0 means 30 seconds.
	WriteTimeout time.Duration
	// TLS encrypts the gRPC door; nil means plain text.
	TLS *tls.Config
}

// Streams is the door for session streams: over gRPC, and within the process.
type Streams struct{}

// NewStreams makes the door of a server. Server.Drain tells its clients to go
// away.
func NewStreams(s *Server, cfg StreamConfig) *Streams { return &Streams{} }

// GRPCServer is a grpc.Server with the session service, its limits, its
// keepalive and cfg.TLS. The caller serves it on a listener and stops it.
func (st *Streams) GRPCServer() *grpc.Server { return nil }

// Dial connects a client in the same process. It is a client.Dialer.
func (st *Streams) Dial(ctx context.Context, hello proto.Hello) (proto.ClientLink, error) {
	return nil, errors.New("server: no session layer")
}
