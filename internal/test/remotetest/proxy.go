package remotetest

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/busy"
)

// Proxy stands before one address and can stop forwarding, in both directions and without closing anything: what a cut
// cable looks like. It can also end its connections at one side only, and slow them down.
type Proxy struct {
	Addr string

	to string

	mu    sync.Mutex   // guards the fields below
	in    net.Listener // nil while connections are refused
	open  *sync.Cond
	cut   bool
	delay time.Duration // of each byte, one way
	lines map[*line]struct{}
}

// line is a connection by way of a proxy.
type line struct {
	ends [2]net.Conn // by Side
	half bool        // one of the ends was closed, and the other one does not know
}

// Side is an end of a connection: that of the caller, or that of the server behind the proxy.
type Side int

// The sides.
const (
	Near Side = iota
	Far
)

// NewProxy starts one at a free port of a host.
func NewProxy(t testing.TB, host, to string) *Proxy { return NewLine(t, host, to, 0) }

// NewLine starts a slow one: bytes and connections take so long for the way there and back. Any number of bytes is
// under way at a time.
func NewLine(t testing.TB, host, to string, roundTrip time.Duration) *Proxy {
	t.Helper()
	_, port, err := net.SplitHostPort(busy.Ports(t, 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: net.JoinHostPort(host, port), to: to, delay: roundTrip / 2, lines: map[*line]struct{}{}}
	p.open = sync.NewCond(&p.mu)
	if err := p.refuse(false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.refuse(true)
		p.set(false, 0)
	})
	return p
}

// refuse lets connections be refused, as at an address without a listener, or accepts them.
func (p *Proxy) refuse(all bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if all == (p.in == nil) {
		return nil
	}
	if all {
		l := p.in
		p.in = nil
		return l.Close()
	}
	l, err := net.Listen("tcp", p.Addr)
	if err != nil {
		return err
	}
	p.in = l
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go p.forward(in)
		}
	}()
	return nil
}

// set ends what a fault has left, and begins another.
func (p *Proxy) set(cut bool, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.delay = cut, delay
	for l := range p.lines {
		l.half = false
	}
	p.open.Broadcast()
}

// halve closes the end of each connection at a side. The other end stays open, and what it sends is lost.
func (p *Proxy) halve(closed Side) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.lines {
		l.half = true
		_ = l.ends[closed].Close()
	}
}

// pass waits while the cable is cut.
func (p *Proxy) pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.cut {
		p.open.Wait()
	}
}

// lag returns the delay as it is now.
func (p *Proxy) lag() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}

func (p *Proxy) forward(in net.Conn) {
	defer in.Close()
	<-time.After(2 * p.lag()) // the handshake of TCP
	p.pass()
	network := "tcp"
	if strings.HasPrefix(p.to, "/") {
		network = "unix"
	}
	out, err := net.Dial(network, p.to)
	if err != nil {
		return
	}
	defer out.Close()
	l := &line{ends: [2]net.Conn{in, out}}
	p.mu.Lock()
	p.lines[l] = struct{}{}
	p.mu.Unlock()
	done := make(chan struct{}, 2)
	go p.pump(l, out, in, done)
	go p.pump(l, in, out, done)
	<-done
	p.mu.Lock()
	defer p.mu.Unlock()
	for l.half {
		p.open.Wait()
	}
	delete(p.lines, l)
}

// pump carries bytes in one direction until an end is closed.
func (p *Proxy) pump(l *line, dst, src net.Conn, done chan<- struct{}) {
	defer func() { done <- struct{}{} }()
	type piece struct {
		bytes []byte
		at    time.Time // when it arrives
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for buf := make([]byte, 32<<10); ; {
			n, err := src.Read(buf)
			if pieces <- (piece{slices.Clone(buf[:n]), time.Now().Add(p.lag())}); err != nil {
				return
			}
		}
	}()
	failed := false
	for next := range pieces {
		if wait := time.Until(next.at); wait > 0 {
			<-time.After(wait)
		}
		p.pass()
		if !failed {
			if _, err := dst.Write(next.bytes); err != nil {
				failed = true
				p.mu.Lock()
				if !l.half {
					_ = src.Close() // which ends the reader
				}
				p.mu.Unlock()
			}
		}
	}
}

// Cable is all lines from one place to another. They fail together.
type Cable []*Proxy

// Cut cuts the cable, or mends it.
func (c Cable) Cut(cut bool) {
	for _, p := range c {
		p.set(cut, 0)
	}
}

// Halve closes the end of each open connection at one side. The other side does not learn of it: what it sends is lost,
// and nothing comes. New connections are whole.
func (c Cable) Halve(closed Side) {
	for _, p := range c {
		p.halve(closed)
	}
}

// Slow lets everything take so long for the way there and back.
func (c Cable) Slow(roundTrip time.Duration) {
	for _, p := range c {
		p.set(false, roundTrip/2)
	}
}

// Refuse lets connections be refused, as at an address without a listener, or accepts them.
func (c Cable) Refuse(t testing.TB, all bool) {
	t.Helper()
	for _, p := range c {
		if err := p.refuse(all); err != nil {
			t.Error(err)
		}
	}
}

// Mend ends any fault. Connections with one end are closed at the other, too.
func (c Cable) Mend() { c.Slow(0) }
