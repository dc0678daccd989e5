package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/endpoint"
	"github.com/interlockdev/interlock/proto"
)

// grpcLink is a proto.ClientLink over a gRPC stream with a connection of its own.
type grpcLink struct {
	conn   *grpc.ClientConn
	stream grpc.ClientStream
	cancel context.CancelFunc
	peer
}

func dialGRPC(ctx context.Context, to peer, hello proto.Hello) (proto.ClientLink, error) {
	transport := insecure.NewCredentials()
	if to.security != nil {
		transport = credentials.NewTLS(to.security)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return to.servers.DialContext(ctx, "tcp", addr)
		}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(proto.Codec{}), grpc.MaxCallRecvMsgSize(maxServerFrame)),
		grpc.WithInitialWindowSize(1 << 20),
		grpc.WithInitialConnWindowSize(4 << 20),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: silence.Ask, Timeout: silence.Expect, PermitWithoutStream: true,
		}),
	}
	conn, err := grpc.NewClient("passthrough:///"+to.addr, options...)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	own, cancel := context.WithCancel(context.Background())
	if hello.Credential != "" {
		own = metadata.AppendToOutgoingContext(own, "authorization", "Bearer "+hello.Credential)
	}
	if hello.Namespace != "" {
		own = metadata.AppendToOutgoingContext(own, "interlock-namespace", string(hello.Namespace))
	}
	stop := context.AfterFunc(ctx, cancel)
	desc := &grpc.StreamDesc{StreamName: proto.StreamName, ServerStreams: true, ClientStreams: true}
	stream, err := conn.NewStream(own, desc, proto.StreamPath)
	if err != nil {
		err = errors.New(status.Convert(err).Message())
		if strings.Contains(err.Error(), " preface: ") { // a connection was made, and the first bytes failed
			err = endpoint.ErrClosed
		}
	}
	if stop(); ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		_ = conn.Close()
		return nil, err
	}
	return &grpcLink{conn: conn, stream: stream, cancel: cancel, peer: to}, nil
}

func (l *grpcLink) Send(f *proto.ClientFrame) error { return l.stream.SendMsg(f) }

func (l *grpcLink) Recv(f *proto.ServerFrame) error {
	err := l.stream.RecvMsg(f)
	if err == nil {
		return nil
	}
	refusal := status.Convert(err)
	if code := l.stream.Trailer().Get("interlock-code"); len(code) == 1 {
		return l.turnedAway(&interlock.Error{Code: interlock.Code(code[0]), Message: refusal.Message()})
	}
	if refusal.Code() == grpccodes.Unimplemented {
		l.failed()
		return errors.New("this is not the gRPC port of an Interlock server: use the address of serve --grpc")
	}
	if refusal.Code() == grpccodes.Unavailable {
		l.failed()
	}
	return errors.New(refusal.Message())
}

// Close with a reason blames the server: the next attempt goes to another one.
func (l *grpcLink) Close(reason *interlock.Error) {
	if reason != nil {
		l.failed()
	}
	l.cancel()
	_ = l.conn.Close()
}
