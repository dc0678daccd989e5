package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Gate bounds the connections of all APIs together. Each takes a file descriptor, and the
// journal needs some of those too.
//
//	accepted ─► anonymous ─── a request under a known credential ─► admitted, if there is a place ─┐
//	              ▲  │                                                                             │
//	              │  └─ closed, oldest first, if others need the place                             │
//	              └─ the newest of the credential with the most, if one with fewer needs the place ┘
//
// Anonymous connections have half of the places at most, so that those without requests keep no client out for long,
// and a sixteenth is always theirs, so that each client can show a credential. The other places are shared by
// credentials: one with fewer connections takes a place from the one with the most, if that has two more. So a
// credential may have all places that no other one wants, and no more than its equal part if others want theirs. A
// connection without a place is anonymous, and answered until another one takes its place; its last request counts as
// its age. A connection belongs to the credential of its last request, because those of other servers carry the calls
// of many. A server that asks for no credentials admits with any whole request.
type Gate struct {
	limit int
	log   *slog.Logger

	mu        sync.Mutex
	open      int
	anonymous list.List             // of *visitor, oldest first
	admitted  map[string]*list.List // of *visitor, oldest first, by credential
	warned    time.Time
}

// warnEvery is how often the log reports that connections are closed, at most.
const warnEvery = 10 * time.Second

// newcomers is the part of the places that is kept for those that have not shown a credential yet.
const newcomers = 16

// NewGate makes a gate for so many connections. 0 means any number.
func NewGate(limit int, log *slog.Logger) *Gate {
	if log == nil {
		log = slog.Default()
	}
	return &Gate{limit: limit, log: log, admitted: map[string]*list.List{}}
}

// Listener counts the connections of a listener.
func (g *Gate) Listener(l *net.TCPListener) net.Listener { return &gateListener{l, g} }

type gateListener struct {
	*net.TCPListener
	gate *Gate
}

// Accept returns the next connection.
func (l *gateListener) Accept() (net.Conn, error) {
	conn, err := l.AcceptTCP()
	if err != nil {
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			l.gate.crowded()
		}
		return nil, err
	}
	return l.gate.enter(conn), nil
}

// visitor is one connection. It is a *net.TCPConn in all but Close.
type visitor struct {
	*net.TCPConn
	gate *Gate
	in   *list.List    // gate.anonymous, or one of gate.admitted; nil after it has left
	at   *list.Element // there
	of   string        // the credential of its last request; "" without credentials, and before
	receipt
}

// enter returns a place for a connection.
func (g *Gate) enter(conn *net.TCPConn) *visitor {
	v := &visitor{TCPConn: conn, gate: g}
	g.mu.Lock()
	var displaced *visitor
	if g.limit > 0 && (g.open >= g.limit || g.anonymous.Len() >= max(1, g.limit/2)) {
		displaced = g.displace() // there is one, because some places are never those of credentials
	}
	g.open++
	v.join(&g.anonymous)
	g.mu.Unlock()
	displaced.end()
	return v
}

// displace takes the place of the anonymous connection that has had it longest. The caller
// holds mu, and ends what it gets.
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

// end closes the connection of a visitor that has left, if there is one.
func (v *visitor) end() {
	if v != nil {
		_ = v.TCPConn.Close()
	}
}

// join puts the visitor at the end of a list. The caller holds gate.mu.
func (v *visitor) join(to *list.List) { v.in, v.at = to, to.PushBack(v) }

// part takes the visitor out of its list. The caller holds gate.mu.
func (v *visitor) part() {
	if v.in.Remove(v.at); v.in.Len() == 0 && v.in != &v.gate.anonymous {
		delete(v.gate.admitted, v.of)
	}
	v.in, v.at = nil, nil
}

// leave returns the place, once. The caller holds gate.mu.
func (v *visitor) leave() {
	if v.in != nil {
		v.part()
		v.gate.open--
	}
}

// admit is called when a request under a known credential has come over the connection.
func (v *visitor) admit(id *Identity) {
	of := ""
	if id.Principal != nil {
		of = string(id.Namespace) + "/" + id.Principal.Name
	}
	g := v.gate
	g.mu.Lock()
	displaced := v.settle(of)
	g.mu.Unlock()
	displaced.end()
}

// settle moves a visitor to the places of a credential, if there is one for it. The caller holds gate.mu, and ends
// what it gets.
func (v *visitor) settle(of string) (displaced *visitor) {
	g, known := v.gate, v.in != &v.gate.anonymous
	switch {
	case v.in == nil || known && v.of == of:
		return nil
	case !known && g.limit > 0 && g.open-g.anonymous.Len() >= g.limit-max(1, g.limit/newcomers):
		most := g.most()
		if most == nil || most.Len() < g.count(of)+2 {
			g.anonymous.MoveToBack(v.at)
			return nil
		}
		displaced = most.Back().Value.(*visitor)
		displaced.leave()
		g.warn("a credential has most of the connections: its newest are closed to admit others")
	}
	v.part()
	if v.of = of; g.admitted[of] == nil {
		g.admitted[of] = list.New()
	}
	v.join(g.admitted[of])
	return displaced
}

// most returns the connections of the credential with the most of them; nil without any. The caller holds mu.
func (g *Gate) most() (most *list.List) {
	for _, l := range g.admitted {
		if most == nil || l.Len() > most.Len() {
			most = l
		}
	}
	return most
}

// count needs mu, too.
func (g *Gate) count(of string) int {
	if l := g.admitted[of]; l != nil {
		return l.Len()
	}
	return 0
}

// Close implements net.Conn.
func (v *visitor) Close() error {
	v.gate.mu.Lock()
	v.leave()
	v.gate.mu.Unlock()
	if v.lost.Load() != nil && isReset(v.TCPConn) {
		v.wasReset()
	}
	return v.TCPConn.Close()
}

// crowded is called when no connection can be accepted for want of descriptors: others than
// connections have taken them. An anonymous connection is closed and frees its own.
func (g *Gate) crowded() {
	g.mu.Lock()
	g.warn("no file descriptor left for a connection")
	v := g.displace()
	g.mu.Unlock()
	v.end()
}

// warn writes to the log now and then. The caller holds mu.
func (g *Gate) warn(what string) {
	if now := time.Now(); now.Sub(g.warned) >= warnEvery {
		g.warned = now
		g.log.Warn(what, "open", g.open, "anonymous", g.anonymous.Len(), "limit", g.limit,
			"next", "allow the server more open files, or set --max-connections")
	}
}

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
		case *strictConn:
			conn = c.Conn
		default:
			return nil
		}
	}
}

// admitRequest admits the connection of an HTTP request.
func admitRequest(r *http.Request, id *Identity) {
	if v, ok := r.Context().Value(visitorKey{}).(*visitor); ok {
		v.admit(id)
	}
}

// admitConn admits a connection of the stream API.
func admitConn(conn net.Conn, id *Identity) {
	if v := visitorOf(conn); v != nil {
		v.admit(id)
	}
}

// peerAddr is the address of a gRPC connection. Its streams find their visitor by it.
type peerAddr struct {
	net.Addr
	visitor *visitor
}
