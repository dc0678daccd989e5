package securitytest

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	pb "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/proto"
)

// link is a session stream without the client, for operations that it would not send.
type link struct {
	t       *testing.T
	s       *site
	stream  grpc.ClientStream
	replies []proto.Reply
}

// tap is the codec of a link, which notes what the server said. It also carries messages of session.proto, for
// operations that proto.Op cannot express.
type tap struct {
	proto.Codec
	said *transcript
}

func (c tap) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(protoreflect.ProtoMessage); ok {
		b, err := pb.Marshal(m)
		return mem.BufferSlice{mem.SliceBuffer(b)}, err
	}
	return c.Codec.Marshal(v)
}

func (c tap) Unmarshal(data mem.BufferSlice, v any) error {
	_, _ = c.said.Write(append(data.Materialize(), '\n'))
	return c.Codec.Unmarshal(data, v)
}

// dial opens a connection to the gRPC door.
func (s *site) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(
		"passthrough:///"+s.server.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(s.tls())),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// stream opens a stream with some metadata, over a connection of its own.
func (s *site) stream(t *testing.T, md ...string) *link {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
	t.Cleanup(cancel)
	stream, err := s.newStream(t, metadata.NewOutgoingContext(ctx, metadata.Pairs(md...)))
	if err != nil {
		t.Fatal(err)
	}
	return &link{t: t, s: s, stream: stream}
}

func (s *site) newStream(t *testing.T, ctx context.Context) (grpc.ClientStream, error) {
	t.Helper()
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	return s.dial(t).NewStream(ctx, desc, proto.StreamPath, grpc.ForceCodecV2(tap{said: s.said}))
}

func (s *site) agentStream(t *testing.T, tenant string) *link {
	t.Helper()
	return s.stream(t, "authorization", "Bearer "+s.secrets[tenant])
}

// send sends operations; the reader finds out that the stream has ended.
func (l *link) send(ops ...proto.Op) {
	_ = l.stream.SendMsg(&proto.ClientFrame{Ops: ops})
}

func (l *link) receive() (proto.ServerFrame, error) {
	var frame proto.ServerFrame
	err := l.stream.RecvMsg(&frame)
	return frame, err
}

// reply waits for the answer to a number.
func (l *link) reply(seq uint64) proto.Reply {
	l.t.Helper()
	for {
		for i, r := range l.replies {
			if r.Seq == seq {
				l.replies = append(l.replies[:i], l.replies[i+1:]...)
				return r
			}
		}
		frame, err := l.receive()
		if err != nil {
			l.t.Fatalf("the stream ended with %v, %v", err, l.stream.Trailer())
		}
		l.replies = append(l.replies, frame.Replies...)
	}
}

// ends waits for the end of the stream and returns the code that the server names.
func (l *link) ends() interlock.Code {
	l.t.Helper()
	for {
		if _, err := l.receive(); err != nil {
			if errors.Is(l.stream.Context().Err(), context.DeadlineExceeded) {
				l.t.Error("the stream does not end")
			}
			_, _ = io.WriteString(l.s.said, err.Error()+"\n")
			return interlock.Code(strings.Join(l.stream.Trailer().Get("interlock-code"), " "))
		}
	}
}

func openOp(slot uint32, agent string) proto.Op {
	return proto.Op{Kind: proto.OpOpen, Slot: slot, Seq: uint64(slot), Agent: agent}
}

func acquireOp(slot uint32, seq uint64, request interlock.LeaseRequest) proto.Op {
	return proto.Op{Kind: proto.OpAcquire, Slot: slot, Seq: seq, LeaseRequest: request}
}

func idOf(id string) [16]byte { return [16]byte(bytesOf(id)) }

// bytesOf returns the bytes of an id or a digest.
func bytesOf(id string) []byte {
	_, digits, ok := strings.Cut(id, "_")
	if !ok {
		digits = id
	}
	b, _ := hex.DecodeString(digits)
	return b
}

func operatorOps() []proto.Op {
	return []proto.Op{
		{Kind: proto.OpSetPattern, Pattern: &interlock.Pattern{Name: "eve", Shape: "eve:{id}"}},
		{Kind: proto.OpDropPattern, Name: "eve"},
		{Kind: proto.OpRevertPattern, Name: "eve"},
		{Kind: proto.OpConfigure, Settings: &interlock.Settings{NearMisses: true}},
		{Kind: proto.OpSetQueue},
		{Kind: proto.OpDropQueue, Name: "eve"},
	}
}

// reader reads an answer without an end.
type reader struct {
	t     *testing.T
	lines chan string
	all   strings.Builder
}

// follow asks for an answer without an end. Its lines are kept until they are read.
func (s *site) follow(t *testing.T, credential, path string, header ...string) *reader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req := s.request(t, ask{method: "GET", path: path, as: credential, header: header}).WithContext(ctx)
	res, err := (&http.Client{Transport: s.web.Transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 {
		t.Fatalf("%s: %s", path, res.Status)
	}
	r := &reader{t: t, lines: make(chan string, 10_000)}
	go func() {
		defer close(r.lines)
		defer res.Body.Close()
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			_, _ = io.WriteString(s.said, lines.Text()+"\n")
			r.lines <- lines.Text()
		}
	}()
	return r
}

// until reads lines until one has some text in it, and returns all lines read.
func (r *reader) until(text string) string {
	r.t.Helper()
	timeout := time.After(busy.Patience())
	for {
		select {
		case line, more := <-r.lines:
			r.all.WriteString(line + "\n")
			if !more {
				r.t.Fatalf("it ended without %q:\n%s", text, r.all.String())
			}
			if strings.Contains(line, text) {
				return r.all.String()
			}
		case <-timeout:
			r.t.Fatalf("there is no %q in\n%s", text, r.all.String())
		}
	}
}

// ends waits for the end.
func (r *reader) ends() {
	r.t.Helper()
	timeout := time.After(busy.Patience())
	for {
		select {
		case _, more := <-r.lines:
			if !more {
				return
			}
		case <-timeout:
			r.t.Error("an answer that goes on does not end")
			return
		}
	}
}
