package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/signed"
	"github.com/interlockdev/interlock/proto"
)

// Forwarder carries calls to the owners of other shards:
//
//	caller ──► this server ──► owner of the shard
//	                 Interlock-Hops: 1, the caller's credential
//
// The owner authenticates the caller again, so no server trusts another one. A call is forwarded once. Its
// outcome is unknown if the owner breaks off; the caller repeats it with the same request id.
type Forwarder struct {
	transport *http.Transport
	dialer    net.Dialer
	security  *tls.Config // nil for plain text
}

const (
	// hopsHeader marks a forwarded call.
	hopsHeader = "Interlock-Hops"
	// ownerHeader names the owner in its answer to a forwarded call, so that a client can ask it next time.
	ownerHeader = "Interlock-Owner"

	// reachTimeout is how long the connection to an owner may take.
	reachTimeout = 2 * time.Second
	// maxForwardIdle is how many unused connections to one owner are kept. They are closed before the owner
	// closes them, so that no call meets a closed one.
	maxForwardIdle     = 256
	forwardIdleTimeout = time.Minute
	// maxOwnerFrame bounds the frames of an owner, as in the client.
	maxOwnerFrame = 64 << 20
)

// NewForwarder makes one. With security it encrypts what it sends, and verifies the owner's certificate.
func NewForwarder(security *tls.Config) *Forwarder {
	f := &Forwarder{dialer: net.Dialer{Timeout: reachTimeout}, security: security}
	f.transport = &http.Transport{
		DialContext: f.dialer.DialContext, TLSClientConfig: security, TLSHandshakeTimeout: reachTimeout,
		MaxIdleConnsPerHost: maxForwardIdle, IdleConnTimeout: forwardIdleTimeout, DisableCompression: true,
	}
	return f
}

// Close ends the connections that are not in use.
func (f *Forwarder) Close() { f.transport.CloseIdleConnections() }

// forwardCall has a call answered by the owner.
func (f *Forwarder) forwardCall(c *call, to Active) {
	base, err := url.Parse(to.HTTP)
	if err != nil {
		c.failWith(fmt.Errorf("the address of the shard's owner: %w", err))
		return
	}
	c.s.obs.figures.forwarded.WithLabelValues("http").Inc()
	c.answered = true
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{}) // the owner bounds the body
	proxy := httputil.ReverseProxy{
		Transport: f.transport, FlushInterval: -1, ErrorLog: slog.NewLogLogger(c.s.log.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = base.Scheme, base.Host, base.Host
			r.Out.Header.Set(hopsHeader, "1")
			// This server has checked where a browser's request comes from. The owner has another name.
			r.Out.Header.Del("Origin")
			r.Out.Header.Del("Sec-Fetch-Site")
		},
		ModifyResponse: func(r *http.Response) error {
			c.status = r.StatusCode
			r.Header.Set(ownerHeader, to.HTTP)
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			c.answered = false
			if c.gone() {
				c.status, c.answered = statusClientGone, true
				return
			}
			c.active = to
			c.fail(f.failure(to, c.r.Method, err))
		},
	}
	proxy.ServeHTTP(pace(c.w), c.r)
}

// failure explains a call that the owner did not answer.
func (f *Forwarder) failure(to Active, method string, err error) *interlock.Error {
	op, dialing := errors.AsType[*net.OpError](err)
	if dialing && op.Op == "dial" || method == http.MethodGet || method == http.MethodHead {
		no := notOwner(to)
		no.Message = fmt.Sprintf(
			"the owner of the shard, %s, does not answer: another server takes over within seconds", to.HTTP,
		)
		return no
	}
	return &interlock.Error{
		Code:    interlock.CodeOutcomeUnknown,
		Message: fmt.Sprintf("the owner of the shard, %s, broke off before it answered", to.HTTP),
	}
}

// keys returns the keys of all shards that an owner has.
func (f *Forwarder) keys(ctx context.Context, owner Active) (signed.KeySet, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, owner.HTTP+keysPath, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set(hopsHeader, "1")
	got, err := f.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(io.LimitReader(got.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	if got.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers with status %d", owner.HTTP, got.StatusCode)
	}
	return signed.ParseKeySet(text)
}

// DialRESP connects to the owner's door for clients of Redis.
func (f *Forwarder) DialRESP(ctx context.Context, addr string) (net.Conn, error) {
	return f.connect(ctx, addr, nil)
}

// connect connects to a port of the owner, with TLS if servers have it.
func (f *Forwarder) connect(ctx context.Context, addr string, protocols []string) (net.Conn, error) {
	conn, err := f.dialer.DialContext(ctx, "tcp", addr)
	if err != nil || f.security == nil {
		return conn, err
	}
	security := f.security.Clone()
	security.NextProtos = protocols
	if security.ServerName == "" {
		security.ServerName, _, _ = net.SplitHostPort(addr)
	}
	secure := tls.Client(conn, security)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

// dial opens a stream at the owner, in the name of the caller.
func (f *Forwarder) dial(ctx context.Context, to Active, hello proto.Hello) (proto.ClientLink, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	conn, err := f.connect(ctx, to.GRPC, []string{proto.Protocol})
	if err != nil {
		return nil, err
	}
	link := proto.ClientFramed(conn, maxOwnerFrame, proto.IdleTimeouts{Ask: serverAsks, Expect: serverExpects})
	stop := context.AfterFunc(ctx, func() { link.Close(nil) })
	hello.Forwarded = true
	err = link.Begin(hello)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		link.Close(nil)
		return nil, err
	}
	return link, nil
}
