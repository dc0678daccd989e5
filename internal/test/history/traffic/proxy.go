package traffic

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
)

// Proxy stands before a server. It cuts each connection after a number of bytes, wherever that
// is: within a request, within an answer, or between the two. And it sends the data of some
// connections a second time, over another one, and drops the answers.
type Proxy struct {
	Cuts    atomic.Int64 // connections cut with bytes on their way
	Doubles atomic.Int64 // reads from clients, each a request or so, that were sent twice

	listener net.Listener
	target   string
	open     sync.WaitGroup

	mu     sync.Mutex
	random *rand.Rand
	calm   bool
	conns  map[net.Conn]bool
}

// NewProxy starts one on a free port of loopback.
func NewProxy(target string, seed uint64) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: target, random: rand.New(rand.NewPCG(seed, 2)), conns: map[net.Conn]bool{}}
	p.open.Go(p.accept)
	return p, nil
}

// Address is where it listens.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Calm lets all connections from now on pass unharmed, and cuts the others.
func (p *Proxy) Calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calm = true
	p.cutAll()
}

// Close ends it and all its connections.
func (p *Proxy) Close() {
	p.listener.Close()
	p.mu.Lock()
	p.cutAll()
	p.mu.Unlock()
	p.open.Wait()
}

func (p *Proxy) cutAll() {
	for c := range p.conns {
		c.Close()
	}
}

func (p *Proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil {
			in.Close()
			continue
		}
		p.begin(in, out)
	}
}

// begin connects a client with the server, and decides what is to happen to them.
func (p *Proxy) begin(in, out net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[in], p.conns[out] = true, true
	const endless = 1 << 60
	up, down := int64(endless), int64(endless)
	doubles := false
	if !p.calm {
		up, down = 1+p.random.Int64N(30_000), 1+p.random.Int64N(60_000)
		doubles = p.random.IntN(2) == 0
	}
	ends := []net.Conn{in, out}
	var to io.Writer = out
	if doubles {
		if second, err := net.Dial("tcp", p.target); err == nil {
			p.conns[second] = true
			ends = append(ends, second)
			to = io.MultiWriter(out, &double{p: p, to: second})
			p.open.Go(func() { _, _ = io.Copy(io.Discard, second) })
		}
	}
	p.open.Go(func() {
		p.pass(to, in, up)
		p.drop(ends...)
	})
	p.open.Go(func() {
		p.pass(in, out, down)
		p.drop(in, out)
	})
}

// pass forwards up to a number of bytes.
func (p *Proxy) pass(to io.Writer, from net.Conn, most int64) {
	if n, _ := io.CopyN(to, from, most); n == most {
		p.Cuts.Add(1)
	}
}

func (p *Proxy) drop(list ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range list {
		c.Close()
		delete(p.conns, c)
	}
}

// double writes to a second connection, as long as that lasts.
type double struct {
	p  *Proxy
	to net.Conn
}

func (d *double) Write(b []byte) (int, error) {
	if _, err := d.to.Write(b); err == nil {
		d.p.Doubles.Add(1)
	}
	return len(b), nil
}
