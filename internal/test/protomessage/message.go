package protomessage

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlockdev/interlock/internal/test/tools"
)

var compile = sync.OnceValues(func() (protoreflect.FileDescriptor, error) {
	compiler := protocompile.Compiler{
		Resolver: &protocompile.SourceResolver{ImportPaths: []string{filepath.Join(tools.Root(), "proto")}},
	}
	files, err := compiler.Compile(context.Background(), "session.proto")
	if err != nil {
		return nil, err
	}
	return files[0], nil
})

// File returns what session.proto declares.
func File(t testing.TB) protoreflect.FileDescriptor {
	t.Helper()
	file, err := compile()
	if err != nil {
		t.Fatalf("proto/*.proto do not compile: %v", err)
	}
	return file
}

// New returns an empty message of session.proto.
func New(t testing.TB, name protoreflect.Name) *dynamicpb.Message {
	t.Helper()
	return dynamicpb.NewMessage(File(t).Messages().ByName(name))
}

// ClientFrame returns the frame that a text describes, in the text format of protocol buffers.
func ClientFrame(t testing.TB, text string) *dynamicpb.Message {
	t.Helper()
	m := New(t, "ClientFrame")
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}

// Stream is a session stream. SendMsg takes a ClientFrame.
type Stream struct {
	grpc.ClientStream
	t testing.TB
}

// Open opens a session stream as session.proto declares it.
func Open(ctx context.Context, t testing.TB, conn *grpc.ClientConn) *Stream {
	t.Helper()
	method := File(t).Services().ByName("Sessions").Methods().ByName("Stream")
	path := "/" + string(method.Parent().FullName()) + "/" + string(method.Name())
	desc := &grpc.StreamDesc{ServerStreams: method.IsStreamingServer(), ClientStreams: method.IsStreamingClient()}
	stream, err := conn.NewStream(ctx, desc, path)
	if err != nil {
		t.Fatal(err)
	}
	return &Stream{stream, t}
}

// Recv waits for a frame and decodes its JSON form, with the names of the .proto files, into frame.
func (s *Stream) Recv(frame any) error {
	m := New(s.t, "ServerFrame")
	if err := s.RecvMsg(m); err != nil {
		return err
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, frame)
}
