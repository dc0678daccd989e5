package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// newGRPCServer is a gRPC server with the session service, its limits and its keepalive.
//
// Of a stream that was cut because its client did not read, gRPC keeps at most 64 KiB until its
// connection ends, and counts it among the connection's 128.
func newGRPCServer(handle func(grpc.ServerStream) error) *grpc.Server {
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(frameCodec{}),
		grpc.MaxRecvMsgSize(2 * proto.MaxFrameBytes), // what is above MaxFrameBytes is refused by frameCodec, in our words
		grpc.MaxHeaderListSize(16 << 10),
		grpc.MaxConcurrentStreams(128), // a connection
		grpc.ConnectionTimeout(greetingTime),
		grpc.InitialWindowSize(1 << 20),
		grpc.InitialConnWindowSize(4 << 20),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time:    serverAsks,
			Timeout: serverExpects,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: 5 * time.Second, PermitWithoutStream: true,
		}),
	}
	server := grpc.NewServer(options...)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: proto.ServiceName, HandlerType: (*any)(nil), Metadata: "session.proto",
		Streams: []grpc.StreamDesc{{
			StreamName: proto.StreamName, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return handle(stream) },
		}},
	}, nil)
	return server
}

// handle serves one gRPC stream. It returns as soon as the stream is cut, because
// that is what makes gRPC's blocked calls return.
func (d *Streams) handle(stream grpc.ServerStream) error {
	link := &grpcLink{stream: stream, cut: make(chan *interlock.Error, 1)}
	st, err := d.begin(link, helloOf(stream.Context()))
	if err != nil {
		return grpcError(stream, err)
	}
	if from, ok := peer.FromContext(stream.Context()); ok {
		if addr, ok := from.Addr.(*peerAddr); ok {
			addr.visitor.admit(&st.identity)
		}
	}
	go st.serve()
	known, stop := d.s.whileKnown(stream.Context(), st.identity)
	defer stop()
	var reason *interlock.Error
	select {
	case reason = <-link.cut:
	case <-known.Done():
		if refusal := takenBack(known); refusal != nil {
			st.cut(refusal)
			reason = <-link.cut
		}
	}
	if reason == nil {
		return nil
	}
	return grpcError(stream, reason)
}

func helloOf(ctx context.Context) (hello proto.Hello) {
	md, _ := metadata.FromIncomingContext(ctx)
	if v := md.Get("authorization"); len(v) == 1 {
		hello.Credential = bearerOf(v[0])
	}
	if v := md.Get("interlock-namespace"); len(v) == 1 {
		hello.Namespace = interlock.Namespace(v[0])
	}
	hello.Forwarded = len(md.Get(hopsHeader)) > 0
	return hello
}

// grpcLink is a proto.ServerLink over a gRPC stream.
type grpcLink struct {
	stream grpc.ServerStream
	cut    chan *interlock.Error
}

func (l *grpcLink) Send(f *proto.ServerFrame) error { return l.stream.SendMsg(f) }

func (l *grpcLink) Recv(f *proto.ClientFrame) error {
	in := frameOrError{frame: f}
	if err := l.stream.RecvMsg(&in); err != nil {
		return err
	}
	if in.refusal != nil {
		return in.refusal
	}
	return nil
}

// frameOrError is a frame, or why it is none.
type frameOrError struct {
	frame   *proto.ClientFrame
	refusal *interlock.Error
}

// frameCodec finds bad frames without telling gRPC of them: it would end the
// stream itself, without the trailer that names the code.
type frameCodec struct{ proto.Codec }

func (c frameCodec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*frameOrError)
	if !ok {
		return c.Codec.Unmarshal(data, v)
	}
	if n := data.Len(); n > proto.MaxFrameBytes {
		in.refusal = frameTooLarge(n)
	} else if err := c.Codec.Unmarshal(data, in.frame); err != nil {
		in.refusal = badFrame(err)
	}
	return nil
}

func frameTooLarge(n int) *interlock.Error {
	return &interlock.Error{
		Code: interlock.CodeBodyTooLarge,
		Message: fmt.Sprintf(
			"a frame has %d bytes, and the maximum is %d: send its operations in several frames", n, proto.MaxFrameBytes,
		),
	}
}

func badFrame(err error) *interlock.Error {
	return &interlock.Error{Code: interlock.CodeInvalidRequest, Message: err.Error() + ": see proto/session.proto"}
}

// Close lets the handler return, once.
func (l *grpcLink) Close(reason *interlock.Error) {
	select {
	case l.cut <- reason:
	default:
	}
}

// grpcError ends a stream with a refusal: its code stands in the trailer, where
// any client can read it.
func grpcError(stream grpc.ServerStream, err error) error {
	refusal, ok := errors.AsType[*interlock.Error](err)
	if !ok {
		return status.Error(grpccodes.Internal, err.Error())
	}
	stream.SetTrailer(metadata.Pairs("interlock-code", string(refusal.Code)))
	code := grpccodes.Unavailable
	switch refusal.Code {
	case interlock.CodeUnauthenticated:
		code = grpccodes.Unauthenticated
	case interlock.CodeForbidden:
		code = grpccodes.PermissionDenied
	case interlock.CodeTooManyStreams:
		code = grpccodes.ResourceExhausted
	case interlock.CodeInvalidRequest, interlock.CodeInvalidNamespace, interlock.CodeBodyTooLarge:
		code = grpccodes.InvalidArgument
	case interlock.CodeInternal:
		code = grpccodes.Internal
	}
	return status.Error(code, refusal.Message)
}
