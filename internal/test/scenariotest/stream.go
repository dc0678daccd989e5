package scenariotest

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// pipe passes the bytes of session streams on to a server, with faults.
type pipe struct {
	*faults
	target func() string
}

// serve passes on the bytes of one connection.
func (p *pipe) serve(conn net.Conn) {
	server, err := net.Dial("tcp", p.target())
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	end := func() {
		cancel()
		_ = conn.Close()
		_ = server.Close()
	}
	defer end()
	var lost, kill atomic.Bool // the next answer does not reach the client; and the server is killed
	var both sync.WaitGroup
	both.Go(func() {
		defer end()
		copyBytes(server, conn, func() bool {
			if p.quiet(ctx) {
				return false
			}
			x := p.next(func(x *fault) bool { return x.kind != delayed && x.kind != repeated })
			kill.CompareAndSwap(false, x.kind == killing)
			lost.CompareAndSwap(false, x.kind == loseAnswer || x.kind == killing)
			return x.kind != loseRequest
		})
	})
	both.Go(func() {
		defer end()
		copyBytes(conn, server, func() bool {
			if x := p.next(func(x *fault) bool { return x.kind == delayed }); x.kind == delayed {
				pause(ctx, x.pause)
			}
			if kill.Load() {
				p.kill()
			}
			return !lost.Load() && !p.quiet(ctx)
		})
	})
	both.Wait()
}

// copyBytes copies until pass refuses what was read.
func copyBytes(to, from net.Conn, pass func() bool) {
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if n > 0 && !pass() {
			return
		}
		if _, no := to.Write(buf[:n]); no != nil || err != nil {
			return
		}
	}
}
