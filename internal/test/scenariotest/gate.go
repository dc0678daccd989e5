package scenariotest

import (
	"net"
	"sync"
	"testing"

	"github.com/interlockdev/interlock/internal/test/busy"
)

// gate is a listener at an address that stays the same while it is closed and opened.
type gate struct {
	*testing.T
	addr  string
	serve func(net.Conn)
	open  sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]struct{}
	hollow   bool // each connection is closed at once
}

func newGate(t *testing.T, serve func(net.Conn)) *gate {
	g := &gate{T: t, addr: busy.Ports(t, 1)[0], serve: serve, conns: map[net.Conn]struct{}{}}
	g.listen()
	t.Cleanup(func() {
		g.shut()
		g.open.Wait()
	})
	return g
}

// listen opens the gate, if it is shut.
func (g *gate) listen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != nil {
		return
	}
	l, err := net.Listen("tcp", g.addr)
	if err != nil {
		g.Error(err)
		return
	}
	g.listener = l
	g.open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			g.add(conn)
			g.open.Go(func() {
				g.mu.Lock()
				hollow := g.hollow
				g.mu.Unlock()
				if !hollow {
					g.serve(conn)
				}
				g.remove(conn)
			})
		}
	})
}

// add has the connection closed by the next cut.
func (g *gate) add(conn net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener == nil {
		_ = conn.Close()
	}
	g.conns[conn] = struct{}{}
}

func (g *gate) remove(conn net.Conn) {
	_ = conn.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, conn)
}

// cut breaks all connections.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.conns {
		_ = conn.Close()
	}
}

// hollowOut closes each new connection at once, too, or no more: so does a load balancer that has no server behind it.
func (g *gate) hollowOut(on bool) {
	g.mu.Lock()
	g.hollow = on
	g.mu.Unlock()
	if on {
		g.cut()
	}
}

// shut refuses new connections, too.
func (g *gate) shut() {
	g.mu.Lock()
	if g.listener != nil {
		_ = g.listener.Close()
		g.listener = nil
	}
	g.mu.Unlock()
	g.cut()
}
