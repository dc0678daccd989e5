package remotetest

import (
	"net"
	"strings"
	"sync"
	"testing"
)

// Proxy stands before one address and can stop forwarding, in both directions and
// without closing anything: what a cut cable looks like.
type Proxy struct {
	Addr string

	mu   sync.Mutex // guards cut
	open *sync.Cond
	cut  bool
}

// NewProxy starts one at a free port of a host.
func NewProxy(t testing.TB, host, to string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String()}
	p.open = sync.NewCond(&p.mu)
	t.Cleanup(func() {
		l.Close()
		p.Set(false)
	})
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go p.forward(in, to)
		}
	}()
	return p
}

// Set cuts the line, or mends it.
func (p *Proxy) Set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	p.open.Broadcast()
}

// pass waits while the cable is cut.
func (p *Proxy) pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.cut {
		p.open.Wait()
	}
}

func (p *Proxy) forward(in net.Conn, to string) {
	defer in.Close()
	p.pass()
	network := "tcp"
	if strings.HasPrefix(to, "/") {
		network = "unix"
	}
	out, err := net.Dial(network, to)
	if err != nil {
		return
	}
	defer out.Close()
	done := make(chan struct{}, 2)
	pump := func(dst, src net.Conn) {
		defer func() { done <- struct{}{} }()
		buf := make([]byte, 32<<10)
		for {
			n, err := src.Read(buf)
			p.pass()
			if n > 0 {
				if _, err := dst.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	go pump(out, in)
	go pump(in, out)
	<-done
}
