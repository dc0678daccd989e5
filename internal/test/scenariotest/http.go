package scenariotest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
)

// forwarder passes HTTP requests on to a server, with faults.
type forwarder struct {
	*faults
	target func() string
}

// serve passes on the requests of one connection.
func (p *forwarder) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		peeked := make(chan struct{})
		go func() {
			defer close(peeked)
			if _, err := in.Peek(1); err != nil { // the client has gone
				cancel()
			}
		}()
		usable := p.pass(ctx, conn, req, body)
		if !usable {
			_ = conn.Close()
		}
		<-peeked
		cancel()
		if !usable {
			return
		}
	}
}

// pass carries one request to the server and its answer back, and reports whether the connection is of use afterwards.
func (p *forwarder) pass(ctx context.Context, conn net.Conn, req *http.Request, body []byte) bool {
	if p.quiet(ctx) {
		return false
	}
	line := req.Method + " " + req.URL.Path
	x := p.next(func(x *fault) bool { return x.path == nil || x.path.MatchString(line) })
	if x.kind == loseRequest {
		return false
	}
	if x.kind == repeated {
		first, err := p.send(ctx, req, body)
		if err != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, first.Body)
		_ = first.Body.Close()
	}
	answer, err := p.send(ctx, req, body)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	switch x.kind {
	case loseAnswer:
		_, _ = io.Copy(io.Discard, answer.Body)
		return false
	case killing:
		_, _ = io.Copy(io.Discard, answer.Body)
		p.kill()
		return false
	case delayed:
		pause(ctx, x.pause)
	}
	if p.quiet(ctx) {
		return false
	}
	return answer.Write(conn) == nil && !answer.Close
}

func (p *forwarder) send(ctx context.Context, req *http.Request, body []byte) (*http.Response, error) {
	out, err := http.NewRequestWithContext(ctx, req.Method, "http://"+p.target()+req.RequestURI, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	out.Header, out.Host = req.Header, p.target()
	return http.DefaultTransport.RoundTrip(out)
}
