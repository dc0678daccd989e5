package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/problem"
	"github.com/interlockdev/interlock/internal/prose"
)

// Gate bounds the connections of all APIs together. Each takes a file descriptor, and the
// journal needs some of those too.
//
//	accepted ─► anonymous ─── a request under a known credential ─► admitted
//	                │
//	                └─ closed, oldest first, where others need the place
//
// Admitted connections are never closed for the sake of others. Anonymous ones have half of the
// places at most, so that connections without requests keep no client out for long. Where every
// place is taken by an admitted connection, newcomers are refused until one leaves. A server that
// asks for no credentials admits with any whole request.
type Gate struct {
	limit int
	log   *slog.Logger

	mu        sync.Mutex
	open      int
	anonymous list.List // of *visitor, oldest first
	warned    time.Time

	refused atomic.Int64
	linger  chan struct{} // one for each refusal that is still being read by its client
}

const (
	// lingers bounds the refused connections that are kept until their client has read why;
	// beyond that they are closed at once. lingerTime is how long one is kept at most.
	lingers    = 4
	lingerTime = time.Second

	// warnEvery is how often the log reports that connections are refused, at most.
	warnEvery = 10 * time.Second
)

// NewGate makes a gate for so many connections. 0 means any number.
func NewGate(limit int, log *slog.Logger) *Gate {
	if log == nil {
		log = slog.Default()
	}
	return &Gate{limit: limit, log: log, linger: make(chan struct{}, lingers)}
}

// Listener counts the connections of a listener. With words, a refused client gets an HTTP answer
// with the reason: right for plain HTTP, and for nothing else.
func (g *Gate) Listener(l *net.TCPListener, words bool) net.Listener {
	return &gateListener{TCPListener: l, gate: g, words: words}
}

type gateListener struct {
	*net.TCPListener
	gate  *Gate
	words bool
}

// Accept returns the next connection that finds a place.
func (l *gateListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptTCP()
		if err != nil {
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				l.gate.crowded()
			}
			return nil, err
		}
		if v := l.gate.enter(conn); v != nil {
			return v, nil
		}
		l.gate.refuse(conn, l.words)
	}
}

// visitor is one connection. It is a *net.TCPConn in all but Close.
type visitor struct {
	*net.TCPConn
	gate *Gate
	at   *list.Element // in gate.anonymous; nil when it was admitted, or has left
	gone bool
}

// enter returns a place for a connection, or nil.
func (g *Gate) enter(conn *net.TCPConn) *visitor {
	v := &visitor{TCPConn: conn, gate: g}
	var displaced *visitor
	defer func() {
		if displaced != nil {
			_ = displaced.TCPConn.Close()
		}
	}()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limit > 0 && (g.open >= g.limit || g.anonymous.Len() >= max(1, g.limit/2)) {
		if displaced = g.displace(); displaced == nil {
			return nil
		}
	}
	g.open++
	v.at = g.anonymous.PushBack(v)
	return v
}

// displace takes the place of the anonymous connection that has had it longest. The caller
// holds mu, and closes what it gets.
func (g *Gate) displace() *visitor {
	oldest := g.anonymous.Front()
	if oldest == nil {
		return nil
	}
	v := oldest.Value.(*visitor)
	v.leave()
	g.warn("anonymous connections are closed to admit others")
	return v
}

// leave returns the place, once. The caller holds gate.mu.
func (v *visitor) leave() {
	if v.gone {
		return
	}
	v.gone = true
	v.gate.open--
	v.settle()
}

// settle takes the visitor out of the list of the anonymous. The caller holds gate.mu.
func (v *visitor) settle() {
	if v.at != nil {
		v.gate.anonymous.Remove(v.at)
		v.at = nil
	}
}

// admit is called when a request under a known credential has come over the connection.
func (v *visitor) admit() {
	v.gate.mu.Lock()
	defer v.gate.mu.Unlock()
	v.settle()
}

// Close implements net.Conn.
func (v *visitor) Close() error {
	v.gate.mu.Lock()
	v.leave()
	v.gate.mu.Unlock()
	return v.TCPConn.Close()
}

// crowded is called when no connection can be accepted for want of descriptors: others than
// connections have taken them. An anonymous connection is closed and frees its own.
func (g *Gate) crowded() {
	g.mu.Lock()
	g.warn("no file descriptor left for a connection")
	v := g.displace()
	g.mu.Unlock()
	if v != nil {
		_ = v.TCPConn.Close()
	}
}

// warn writes to the log now and then. The caller holds mu.
func (g *Gate) warn(what string) {
	if now := time.Now(); now.Sub(g.warned) >= warnEvery {
		g.warned = now
		g.log.Warn(what, "open", g.open, "anonymous", g.anonymous.Len(), "limit", g.limit, "refused", g.refused.Load(),
			"next", "allow the server more open files, or set --max-connections")
	}
}

// refuse closes a connection that finds no place.
func (g *Gate) refuse(conn *net.TCPConn, words bool) {
	g.refused.Add(1)
	g.mu.Lock()
	g.warn("connections are refused: the limit is reached")
	g.mu.Unlock()
	if !words {
		_ = conn.Close()
		return
	}
	select {
	case g.linger <- struct{}{}:
	default:
		_ = conn.Close()
		return
	}
	go func() {
		defer func() { <-g.linger }()
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(lingerTime))
		// An answer before the request would be thrown away by many a client, and so would one on a
		// connection that is closed while bytes of the request are unread.
		var first [1]byte
		if _, err := conn.Read(first[:]); err != nil {
			return
		}
		if _, err := conn.Write(fullAnswer); err == nil && conn.CloseWrite() == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(conn, interlock.MaxBodyBytes))
		}
	}()
}

// fullAnswer is the HTTP answer to a client that finds no place.
var fullAnswer = func() []byte {
	info := problem.Of(interlock.CodeOverloaded)
	j := newJSON()
	defer j.free()
	j.open("")
	j.str("type", problem.Base+string(interlock.CodeOverloaded))
	j.str("title", info.Title)
	j.int("status", int64(info.Status))
	j.str("code", string(interlock.CodeOverloaded))
	j.str(
		"detail",
		"the server has reached its limit of connections: repeat the request in a moment, and keep connections open "+
			"between requests",
	)
	j.bool("retryable", true)
	writeAdvice(j, prose.ForCode(interlock.CodeOverloaded))
	j.close()
	j.b = append(j.b, '\n')
	return append([]byte("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nCache-Control: "+
		"no-store\r\n"+
		"Retry-After: 1\r\nConnection: close\r\n\r\n"), j.b...)
}()

// visitorKey is the key of a connection's visitor in the contexts of its requests.
type visitorKey struct{}

// withVisitor is http.Server.ConnContext.
func withVisitor(ctx context.Context, conn net.Conn) context.Context {
	if v := visitorOf(conn); v != nil {
		return context.WithValue(ctx, visitorKey{}, v)
	}
	return ctx
}

// visitorOf returns the visitor behind a connection, or nil.
func visitorOf(conn net.Conn) *visitor {
	for {
		switch c := conn.(type) {
		case *visitor:
			return c
		case *tls.Conn:
			conn = c.NetConn()
		case *peekedConn:
			conn = c.Conn
		default:
			return nil
		}
	}
}

// admitRequest admits the connection of an HTTP request.
func admitRequest(r *http.Request) {
	if v, ok := r.Context().Value(visitorKey{}).(*visitor); ok {
		v.admit()
	}
}

// admitConn admits a connection of the stream API.
func admitConn(conn net.Conn) {
	if v := visitorOf(conn); v != nil {
		v.admit()
	}
}

// peerAddr is the address of a gRPC connection. Its streams find their visitor by it.
type peerAddr struct {
	net.Addr
	visitor *visitor
}
