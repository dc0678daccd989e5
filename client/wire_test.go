package client_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// fault is what is wrong with the way to a server.
type fault int

const (
	fine     fault = iota
	vanished       // nothing arrives, and no connection is made
	silent         // connections are made and stay, as with a process that stands still: nothing arrives
	halfOpen       // the server has closed its ends, and the client hears nothing; new connections are silent
	closing        // connections are closed, and each new one at once: a load balancer without a server behind it
	slow           // each piece takes a second
)

// network is one in memory, for tests in virtual time.
type network struct {
	mu    sync.Mutex
	open  *sync.Cond
	sites map[string]*site // by address
	busy  sync.WaitGroup   // what carries
}

// site is an address and what is wrong with the way there.
type site struct {
	conns chan net.Conn // to be accepted
	fault fault
	wires []*wire
}

// wire is a connection.
type wire struct {
	near, far net.Conn // what the client and the server have
	dead      bool     // nothing passes any more
}

func newNetwork(t *testing.T, addrs ...string) *network {
	n := &network{sites: map[string]*site{}}
	n.open = sync.NewCond(&n.mu)
	for _, addr := range addrs {
		n.sites[addr] = &site{conns: make(chan net.Conn)}
	}
	t.Cleanup(func() {
		for _, addr := range addrs {
			n.set(addr, closing)
		}
		n.busy.Wait()
	})
	return n
}

// set begins a fault at an address.
func (n *network) set(addr string, f fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.sites[addr]
	at.fault = f
	for _, w := range at.wires {
		switch f {
		case vanished, silent:
			w.dead = true
		case halfOpen:
			w.dead = true
			w.far.Close()
		case closing:
			w.dead = false
			w.near.Close()
			w.far.Close()
		}
	}
	n.open.Broadcast()
}

// dial connects to an address.
func (n *network) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	at := n.sites[addr]
	f := at.fault
	n.mu.Unlock()
	switch f {
	case vanished:
		<-ctx.Done()
		return nil, ctx.Err()
	case slow:
		select {
		case <-time.After(2 * lag):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	near, ours := net.Pipe()
	if f == closing {
		ours.Close()
		return near, nil
	}
	theirs, far := net.Pipe()
	w := &wire{near: near, far: far, dead: f == silent || f == halfOpen}
	n.mu.Lock()
	at.wires = append(at.wires, w)
	n.mu.Unlock()
	n.busy.Go(func() { n.carry(at, w, theirs, ours) })
	n.busy.Go(func() { n.carry(at, w, ours, theirs) })
	if !w.dead {
		select {
		case at.conns <- far:
		case <-ctx.Done():
			near.Close()
			return nil, ctx.Err()
		}
	}
	return near, nil
}

// lag is how long a piece takes where it is slow.
const lag = time.Second

// carry takes bytes in one direction.
func (n *network) carry(at *site, w *wire, to, from net.Conn) {
	type piece struct {
		bytes []byte
		at    time.Time
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for buf := make([]byte, 4096); ; {
			read, err := from.Read(buf)
			if err != nil {
				return
			}
			n.mu.Lock()
			late := time.Duration(0)
			if at.fault == slow {
				late = lag
			}
			n.mu.Unlock()
			pieces <- piece{slices.Clone(buf[:read]), time.Now().Add(late)}
		}
	}()
	pass := func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		for w.dead {
			n.open.Wait()
		}
	}
	for p := range pieces {
		<-time.After(time.Until(p.at))
		pass()
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	pass() // neither the end of a connection arrives
	from.Close()
	to.Close()
	for range pieces { // the reader ends
	}
}

// listen returns a listener at an address.
func (n *network) listen(addr string) net.Listener {
	return &gate{addr: addr, conns: n.sites[addr].conns, closed: make(chan struct{})}
}

// gate is a listener of a network.
type gate struct {
	addr   string
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (g *gate) Accept() (net.Conn, error) {
	select {
	case c := <-g.conns:
		return c, nil
	case <-g.closed:
		return nil, errors.New("the listener is closed")
	}
}

func (g *gate) Close() error {
	g.once.Do(func() { close(g.closed) })
	return nil
}

func (g *gate) Addr() net.Addr { return gateAddr(g.addr) }

type gateAddr string

func (a gateAddr) Network() string { return "tcp" }
func (a gateAddr) String() string  { return string(a) }
