package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/proto/sessionpb"
)

// maxServerFrame bounds what is accepted from a server.
const maxServerFrame = 64 << 20

// grpcDialer connects to the addresses in turn, beginning with the one that
// answered last.
func grpcDialer(cfg Config) (Dialer, error) {
	if len(cfg.Addrs) == 0 {
		return nil, errors.New("client: Config.Addrs is empty: name the host:port of a gRPC door, such as 127.0.0.1:7421")
	}
	transport := insecure.NewCredentials()
	if cfg.TLS != nil {
		transport = credentials.NewTLS(cfg.TLS)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(proto.Codec{}), grpc.MaxCallRecvMsgSize(maxServerFrame)),
		grpc.WithInitialWindowSize(1 << 20),
		grpc.WithInitialConnWindowSize(4 << 20),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}),
	}
	var start atomic.Uint32
	return func(ctx context.Context, hello proto.Hello) (proto.ClientLink, error) {
		var errs []error
		for range cfg.Addrs {
			addr := cfg.Addrs[int(start.Load())%len(cfg.Addrs)]
			limit, cancel := context.WithTimeoutCause(ctx, dialTimeout, errors.New(addr+" says nothing"))
			link, err := dialGRPC(limit, addr, hello, options, sync.OnceFunc(func() { start.Add(1) }))
			cancel()
			if err == nil {
				return link, nil
			}
			start.Add(1)
			errs = append(errs, err)
		}
		return nil, errors.Join(errs...)
	}, nil
}

// grpcLink is a proto.ClientLink over a gRPC stream with a connection of its own.
type grpcLink struct {
	conn   *grpc.ClientConn
	stream grpc.ClientStream
	cancel context.CancelFunc
	failed func() // the next attempt goes to the next address; called more than once it does nothing
}

func dialGRPC(ctx context.Context, addr string, hello proto.Hello, options []grpc.DialOption, failed func()) (*grpcLink, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, options...)
	if err != nil {
		return nil, fmt.Errorf("client: address %q: %w", addr, err)
	}
	own, cancel := context.WithCancel(context.Background())
	if hello.Credential != "" {
		own = metadata.AppendToOutgoingContext(own, "authorization", "Bearer "+hello.Credential)
	}
	if hello.Namespace != "" {
		own = metadata.AppendToOutgoingContext(own, "interlock-namespace", string(hello.Namespace))
	}
	stop := context.AfterFunc(ctx, cancel)
	stream, err := conn.NewStream(own, &grpc.StreamDesc{StreamName: "Stream", ServerStreams: true, ClientStreams: true},
		sessionpb.Sessions_Stream_FullMethodName)
	if err != nil {
		err = errors.New(status.Convert(err).Message())
	}
	if stop(); ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		_ = conn.Close()
		return nil, err
	}
	return &grpcLink{conn: conn, stream: stream, cancel: cancel, failed: failed}, nil
}

func (l *grpcLink) Send(f *proto.ClientFrame) error { return l.stream.SendMsg(f) }

func (l *grpcLink) Recv(f *proto.ServerFrame) error {
	err := l.stream.RecvMsg(f)
	if err == nil {
		return nil
	}
	refusal := status.Convert(err)
	if code := l.stream.Trailer().Get("interlock-code"); len(code) == 1 {
		switch interlock.Code(code[0]) {
		case interlock.CodeShuttingDown, interlock.CodeNotOwner, interlock.CodeTooManyStreams:
			l.failed()
		}
		return &interlock.Error{Code: interlock.Code(code[0]), Message: refusal.Message()}
	}
	if refusal.Code() == grpccodes.Unimplemented {
		l.failed()
		return errors.New("what listens there is no gRPC door of Interlock: use the address of serve --grpc")
	}
	if refusal.Code() == grpccodes.Unavailable {
		l.failed()
	}
	return errors.New(refusal.Message())
}

// Close with a reason says that the server is to blame: the next attempt goes to
// another one.
func (l *grpcLink) Close(reason *interlock.Error) {
	if reason != nil {
		l.failed()
	}
	l.cancel()
	_ = l.conn.Close()
}
