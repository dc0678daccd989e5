package server_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/server"
)

var never = proto.IdleTimeouts{Ask: time.Hour, Expect: time.Hour}

// serveStreams serves a door on a port of its own.
func serveStreams(t *testing.T, s *server.StreamServer) (addr string, ended <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String(), done
}

func dialDoor(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func framedClient(t *testing.T, addr string) *proto.FramedLink[proto.ClientFrame, proto.ServerFrame] {
	t.Helper()
	link := proto.ClientFramed(dialDoor(t, addr), 1<<20, never)
	if err := link.Begin(proto.Hello{Namespace: "acme"}); err != nil {
		t.Fatal(err)
	}
	return link
}

func TestFramedDoor(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	addr, _ := serveStreams(t, d.Server())
	link := framedClient(t, addr)
	if err := link.Send(&proto.ClientFrame{
		Ops: []proto.Op{{Kind: proto.OpOpen, Slot: 1, Seq: 1, Agent: "framed"}},
	}); err != nil {
		t.Fatal(err)
	}
	var frame proto.ServerFrame
	if err := link.Recv(&frame); err != nil || len(frame.Replies) != 1 || frame.Replies[0].Session.Agent != "framed" ||
		frame.Epoch == 0 {
		t.Fatalf("got %+v, %v", frame, err)
	}
	// Input that is no frame is refused in words.
	if err := link.Send(&proto.ClientFrame{Ops: []proto.Op{{Kind: proto.OpAcquire, Slot: 1, Seq: 2, LeaseRequest: interlock.LeaseRequest{
		Purpose: "\xff",
	}}}}); err != nil {
		t.Fatal(err)
	}
	refusal, ok := errors.AsType[*interlock.Error](link.Recv(&frame))
	if !ok || refusal.Code != interlock.CodeInvalidRequest || !strings.Contains(refusal.Message, "UTF-8") {
		t.Errorf("got %+v", refusal)
	}
	large := framedClient(t, addr)
	go func() {
		op := proto.Op{Kind: proto.OpAcquire, Slot: 1, Seq: 1, LeaseRequest: interlock.LeaseRequest{
			Purpose: strings.Repeat("x", proto.MaxFrameBytes),
		}}
		_ = large.Send(&proto.ClientFrame{Ops: []proto.Op{op}})
	}()
	refusal, ok = errors.AsType[*interlock.Error](large.Recv(&frame))
	if !ok || refusal.Code != interlock.CodeBodyTooLarge {
		t.Errorf("got %+v", refusal)
	}
}

// Operations that arrive together are submitted together, although they come in several frames.
// Their answers need not come in one: the writer may send the first before the shard has delivered
// the last.
func TestFramesTogether(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	addr, _ := serveStreams(t, d.Server())
	conn := dialDoor(t, addr)
	link := proto.ClientFramed(conn, 1<<20, never)
	if err := link.Begin(proto.Hello{Namespace: "acme"}); err != nil {
		t.Fatal(err)
	}
	// With the first operation of a namespace, the server reads its quota from the shard.
	open := func(slot uint32) *proto.ClientFrame {
		return &proto.ClientFrame{Ops: []proto.Op{{Kind: proto.OpOpen, Slot: slot, Seq: 1, Agent: "framed"}}}
	}
	var answer proto.ServerFrame
	if err := errors.Join(link.Send(open(1)), link.Recv(&answer)); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for slot := range uint32(5) {
		frame := open(2 + slot)
		body := frame.AppendTo(nil)
		all = append(all, 1)
		all = binary.LittleEndian.AppendUint32(all, uint32(len(body)))
		all = append(all, body...)
	}
	before := d.shard.Came()
	if _, err := conn.Write(all); err != nil {
		t.Fatal(err)
	}
	for answers := 0; answers < 5; {
		var frame proto.ServerFrame
		if err := link.Recv(&frame); err != nil {
			t.Fatal(err)
		}
		answers += len(frame.Replies)
	}
	if n := d.shard.Came() - before; n != 1 {
		t.Errorf("5 frames that arrived together were submitted in %d batches, want 1", n)
	}
}

// A client that asks and does not read is cut, also where the reader sends the answers.
func TestFramedClientThatDoesNotRead(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{WriteTimeout: time.Second})
	addr, _ := serveStreams(t, d.Server())
	conn := dialDoor(t, addr)
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	link := proto.ClientFramed(conn, 1<<20, never)
	if err := link.Begin(proto.Hello{Namespace: "acme"}); err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); ; seq++ {
		op := proto.Op{Kind: proto.OpGetLease, Slot: 1, Seq: seq, Acked: seq - 1}
		if seq == 1 {
			op = proto.Op{Kind: proto.OpOpen, Slot: 1, Seq: 1, Agent: "framed"}
		}
		if err := link.Send(&proto.ClientFrame{Ops: []proto.Op{op}}); err != nil {
			t.Logf("cut at %d", seq)
			return
		}
		if seq > 1_000_000 {
			t.Fatal("a million answers were not read, and the stream goes on")
		}
	}
}

// A client that comes too late is refused before it is anything.
func TestFramedDoorIsFull(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{MaxStreams: 1})
	addr, _ := serveStreams(t, d.Server())
	framedClient(t, addr)
	refusal, ok := errors.AsType[*interlock.Error](proto.ClientFramed(dialDoor(t, addr), 1<<20, never).Begin(
		proto.Hello{},
	))
	if !ok || refusal.Code != interlock.CodeTooManyStreams {
		t.Errorf("got %+v", refusal)
	}
}

// A connection that does not say what it wants is not kept.
func TestSlowGreeting(t *testing.T) {
	for _, said := range []string{"", "INTER", proto.Preface, proto.Preface + "\x02\xff"} {
		synctest.Test(t, func(t *testing.T) {
			d := newStreamDoor(t, server.StreamConfig{Greeting: 5 * time.Second})
			s, l := d.Server(), &oneConn{conns: make(chan net.Conn, 1)}
			go func() { _ = s.Serve(l) }()
			defer s.Stop()
			conn, theirs := net.Pipe()
			l.conns <- theirs
			go func() { _, _ = io.WriteString(conn, said) }()
			began := time.Now()
			if b, err := io.ReadAll(conn); err != nil || len(b) > 0 || time.Since(began) != 5*time.Second {
				t.Errorf("after %q: got %q, %v, in %v", said, b, err, time.Since(began))
			}
			conn.Close()
		})
	}
}

// oneConn is a listener that has a connection without a socket: its deadlines pass with the clock of a bubble.
type oneConn struct {
	conns chan net.Conn
	once  sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c, more := <-l.conns; more {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l *oneConn) Close() error   { l.once.Do(func() { close(l.conns) }); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// A stopped server ends what it serves; a client that was cut learns why.
func TestStreamServerStops(t *testing.T) {
	d := newStreamDoor(t, server.StreamConfig{})
	s := d.Server()
	addr, ended := serveStreams(t, s)
	silent, cut := dialDoor(t, addr), framedClient(t, addr)
	d.Cut(&interlock.Error{Code: interlock.CodeShuttingDown, Message: "it stops"})
	left := framedClient(t, addr)
	heard := make(chan error, 1)
	go func() {
		err := cut.Recv(&proto.ServerFrame{})
		cut.Close(nil)
		heard <- err
	}()
	gone := make(chan error, 1)
	go func() {
		err := left.Recv(&proto.ServerFrame{})
		left.Close(nil)
		gone <- err
	}()
	s.Stop()
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if refusal, ok := errors.AsType[*interlock.Error](<-heard); !ok || refusal.Code != interlock.CodeShuttingDown {
		t.Errorf("who was cut: %v", refusal)
	}
	if err := <-gone; !errors.Is(err, io.EOF) {
		t.Errorf("who was not: %v", err)
	}
	if b, err := io.ReadAll(silent); len(b) > 0 {
		t.Errorf("got %q, %v", b, err)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("it still listens")
	}
	if err := s.Serve(nowhere{}); err != nil {
		t.Errorf("Serve after Stop: %v", err)
	}
}

// nowhere is a listener that was closed in time.
type nowhere struct{ net.Listener }

func (nowhere) Close() error { return nil }
