package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// StreamServer serves session streams on listeners: to each connection what it begins
// with, Interlock's own records (proto/framed.go) or gRPC.
//
//	             ┌─ TLS, if there is a certificate
//	connection ──┴─► "INTERLOCK/1" ──► framed link ─┐
//	               └─ anything else ─► gRPC stream ─┴─► Streams
//
// After Drain, clients stay until they are cut: call Streams.Cut, then Stop.
type StreamServer struct {
	streams  func() *Streams // the server that answers now
	security *tls.Config
	greeting time.Duration // how long a client may take for TLS, the preface and its hello
	rpc      *grpc.Server

	mu        sync.Mutex
	stopped   bool
	listeners map[net.Listener]struct{}
	conns     map[net.Conn]*frameLink // those that gRPC does not have; nil until it is known what they are
	serving   sync.WaitGroup          // one for each of them
}

// frameLink is a framed link as the session layer uses it.
type frameLink struct {
	*proto.FramedLink[proto.ServerFrame, proto.ClientFrame]
}

const (
	greetingTime = 10 * time.Second

	serverAsks    = 20 * time.Second // after so much silence, whether the other side is alive
	serverExpects = 10 * time.Second
)

// Server returns the server of the streams, with StreamConfig.TLS and StreamConfig.Greeting.
func (d *Streams) Server() *StreamServer {
	return newStreamServer(d.cfg.TLS, d.cfg.Greeting, func() *Streams { return d })
}

func newStreamServer(security *tls.Config, greeting time.Duration, streams func() *Streams) *StreamServer {
	s := &StreamServer{
		streams: streams, greeting: cmp.Or(greeting, greetingTime),
		rpc:       newGRPCServer(func(stream grpc.ServerStream) error { return streams().handle(stream) }),
		listeners: map[net.Listener]struct{}{}, conns: map[net.Conn]*frameLink{},
	}
	if security != nil {
		s.security = security.Clone()
		s.security.NextProtos = []string{proto.Protocol, "h2"}
	}
	return s
}

// Serve accepts connections until Stop, and then returns nil.
func (s *StreamServer) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return l.Close()
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	rest := &fallbackListener{addr: l.Addr(), conns: make(chan net.Conn), closed: make(chan struct{})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.rpc.Serve(rest) // ends when rest is closed
	}()
	defer func() {
		_ = rest.Close()
		<-served
	}()
	for pause := time.Duration(0); ; {
		conn, err := l.Accept()
		if err == nil {
			pause = 0
			if s.enter(conn) {
				go s.greet(conn, rest)
			}
			continue
		}
		s.mu.Lock()
		stopped := s.stopped
		s.mu.Unlock()
		if stopped {
			return nil
		}
		if temporary, ok := errors.AsType[interface {
			error
			Temporary() bool
		}](err); !ok || !temporary.Temporary() {
			return err
		}
		// Too many open files, for example: others will be closed.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		time.Sleep(pause)
	}
}

// Stop closes the listeners and ends the streams, without a word to their clients but to
// those that were cut before.
func (s *StreamServer) Stop() {
	s.mu.Lock()
	s.stopped = true
	for l := range s.listeners {
		_ = l.Close()
	}
	for conn, link := range s.conns {
		if link != nil {
			link.Close(nil)
		} else {
			_ = conn.Close()
		}
	}
	s.mu.Unlock()
	s.rpc.Stop()
	s.serving.Wait()
}

// enter takes a connection in, unless the server has stopped.
func (s *StreamServer) enter(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		_ = conn.Close()
		return false
	}
	s.conns[conn] = nil
	s.serving.Add(1)
	return true
}

// framed records a connection as a framed link, unless the server has stopped.
func (s *StreamServer) framed(conn net.Conn, link *frameLink) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.conns[conn] = link
	return true
}

func (s *StreamServer) leave(conn net.Conn) {
	s.mu.Lock()
	delete(s.conns, conn)
	s.mu.Unlock()
	s.serving.Done()
}

// greet detects the kind of a connection and serves it, or leaves it to gRPC.
func (s *StreamServer) greet(raw net.Conn, rest *fallbackListener) {
	defer s.leave(raw)
	_ = raw.SetDeadline(time.Now().Add(s.greeting))
	conn := raw
	if s.security != nil {
		secure := tls.Server(raw, s.security)
		if secure.Handshake() != nil {
			_ = raw.Close()
			return
		}
		conn = secure
	}
	var first [len(proto.Preface)]byte
	n := 0
	for {
		maybe, certain := proto.IsPreface(first[:n])
		if certain || !maybe {
			_ = raw.SetDeadline(time.Time{}) // from here on it has those of its protocol
		}
		if certain {
			s.stream(raw, conn)
			return
		}
		if !maybe {
			rest.give(&peekedConn{Conn: conn, read: first[:n]})
			return
		}
		got, err := conn.Read(first[n:])
		if n += got; err != nil && got == 0 {
			_ = raw.Close()
			return
		}
	}
}

// stream serves a framed link until it has ended.
func (s *StreamServer) stream(raw, conn net.Conn) {
	link := &frameLink{proto.ServerFramed(
		conn, proto.MaxFrameBytes, proto.IdleTimeouts{Ask: serverAsks, Expect: serverExpects},
	)}
	if !s.framed(raw, link) {
		_ = raw.Close()
		return
	}
	defer func() { <-link.Done() }()
	d := s.streams()
	st, err := s.begin(d, link)
	if err != nil {
		refusal, _ := errors.AsType[*interlock.Error](err)
		link.Close(refusal)
		return
	}
	admitConn(raw, &st.identity)
	known, stop := d.s.whileKnown(context.Background(), st.identity)
	defer stop()
	defer context.AfterFunc(known, func() {
		if refusal := takenBack(known); refusal != nil {
			st.cut(refusal)
		}
	})()
	st.serve()
}

// begin lets a client in that has identified itself.
func (s *StreamServer) begin(d *Streams, link *frameLink) (*admission, error) {
	late := time.AfterFunc(s.greeting, func() { link.Close(nil) })
	defer late.Stop()
	hello, err := link.Hello()
	if err != nil {
		return nil, err
	}
	st, err := d.begin(link, hello)
	if err != nil {
		return nil, err
	}
	if err := link.Welcome(); err != nil {
		st.forget()
		return nil, err
	}
	return st, nil
}

// Recv reports the defect of a frame in words, so that the client receives it.
func (l *frameLink) Recv(f *proto.ClientFrame) error {
	err := l.FramedLink.Recv(f)
	if tooLarge, ok := errors.AsType[*proto.TooLarge](err); ok {
		return frameTooLarge(tooLarge.Length)
	}
	if errors.Is(err, proto.ErrFrame) {
		return badFrame(err)
	}
	return err
}

// fallbackListener is the listener of those connections that are no framed links.
type fallbackListener struct {
	addr   net.Addr
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (r *fallbackListener) give(conn net.Conn) {
	select {
	case r.conns <- conn:
	case <-r.closed:
		_ = conn.Close()
	}
}

func (r *fallbackListener) Accept() (net.Conn, error) {
	select {
	case conn := <-r.conns:
		return conn, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

func (r *fallbackListener) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

func (r *fallbackListener) Addr() net.Addr { return r.addr }

// peekedConn is a connection after its first bytes were read.
type peekedConn struct {
	net.Conn
	read []byte
}

// RemoteAddr lets the streams of the connection find its visitor.
func (c *peekedConn) RemoteAddr() net.Addr {
	if v := visitorOf(c.Conn); v != nil {
		return &peerAddr{c.Conn.RemoteAddr(), v}
	}
	return c.Conn.RemoteAddr()
}

func (c *peekedConn) Read(b []byte) (int, error) {
	if len(c.read) > 0 {
		n := copy(b, c.read)
		c.read = c.read[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}
