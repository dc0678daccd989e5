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
	"sync/atomic"
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
	probes    *http.Transport // connects each time
	trips     trips
	dialer    net.Dialer
	security  *tls.Config  // nil for plain text
	trusted   *Authorities // nil: those of the system

	// Suspect is called with the URL of an owner that did not answer a call; nil: nothing is.
	Suspect func(http string)
	// Woken is called when another server has changed which server owns what; nil: nothing is.
	Woken func()
}

const (
	// hopsHeader marks a forwarded call.
	hopsHeader = "Interlock-Hops"
	// ownerHeader names the owner in its answer to a forwarded call, so that a client can ask it next time.
	ownerHeader = "Interlock-Owner"

	// lookHeader asks a server to look at the table of servers at once. It costs an early look at most, so anyone may.
	lookHeader = "Interlock-Look"

	// reachTimeout is how long the connection to an owner may take: less than the 1.5 s after which a client takes the
	// server that it asked for the silent one.
	reachTimeout = 1250 * time.Millisecond
	// maxForwardIdle is how many unused connections to one owner are kept. They are closed before the owner
	// closes them, so that no call meets a closed one.
	maxForwardIdle     = 256
	forwardIdleTimeout = time.Minute
	// maxOwnerFrame bounds the frames of an owner, as in the client.
	maxOwnerFrame = 64 << 20
)

// NewForwarder makes one. With security it encrypts what it sends, and verifies the owner's certificate: by trusted
// authorities as they are at the time, or, if trusted is nil, by the system's.
func NewForwarder(security *tls.Config, trusted *Authorities) *Forwarder {
	f := &Forwarder{dialer: net.Dialer{Timeout: reachTimeout}, security: security, trusted: trusted}
	secure := func(ctx context.Context, _, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, reachTimeout)
		defer cancel()
		return f.connect(ctx, addr, nil)
	}
	f.transport = &http.Transport{
		DialContext: f.dialer.DialContext, DialTLSContext: secure,
		MaxIdleConnsPerHost: maxForwardIdle, IdleConnTimeout: forwardIdleTimeout, DisableCompression: true,
	}
	f.probes = &http.Transport{DialContext: f.dialer.DialContext, DialTLSContext: secure, DisableKeepAlives: true}
	return f
}

// Follow ends what is under way to servers that are not the owners any more, or that do not answer. It is called
// after each change of the locations.
func (f *Forwarder) Follow(list []Location) { f.trips.follow(list) }

// Probe asks another server for any answer, by connections of their own, as a caller would.
func (f *Forwarder) Probe(ctx context.Context, at Active) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.HTTP+"/healthz", nil)
	if err != nil {
		return err
	}
	got, err := f.probes.RoundTrip(r)
	if err != nil {
		return err
	}
	_ = got.Body.Close()
	conn, err := f.dialer.DialContext(ctx, "tcp", at.GRPC)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Wake has another server look at the table of servers at once.
func (f *Forwarder) Wake(ctx context.Context, at Active) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.HTTP+"/healthz", nil)
	if err != nil {
		return err
	}
	r.Header.Set(lookHeader, "1")
	got, err := f.transport.RoundTrip(r)
	if err != nil {
		return err
	}
	return got.Body.Close()
}

// Close ends the connections that are not in use.
func (f *Forwarder) Close() { f.transport.CloseIdleConnections() }

// forwardCall has a call answered by the owner. again reports that nothing was answered, and that the call should go
// to where its shard is now.
func (f *Forwarder) forwardCall(c *call, at Location) (again bool) {
	to := at.Active
	base, err := url.Parse(to.HTTP)
	if err != nil {
		c.failWith(fmt.Errorf("the address of the shard's owner: %w", err))
		return false
	}
	ctx, cancel := context.WithCancelCause(c.r.Context())
	defer cancel(nil)
	defer f.trips.begin(toOwnerOf(at, peerPatience), cancel)()
	begun := c.limit(cancel)
	defer begun()
	reads := c.r.Method == http.MethodGet || c.r.Method == http.MethodHead
	c.s.obs.figures.forwarded.WithLabelValues("http").Inc()
	c.answered = true
	rc := http.NewResponseController(c.w)
	body := &forwardedBody{ReadCloser: c.r.Body, arrived: func() { _ = rc.SetReadDeadline(time.Time{}) }}
	if c.r.ContentLength == 0 || c.r.Body == nil {
		body.arrived()
	} else {
		c.r.Body = body
	}
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
			begun()
			c.status = r.StatusCode
			r.Header.Set(ownerHeader, to.HTTP)
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			c.answered = false
			if body.broken.Load() { // which looks as if the client had gone
				c.bodyMissing()
				return
			}
			if c.gone() {
				c.status, c.answered = statusClientGone, true
				return
			}
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			if again = reads && errors.Is(err, errOwnerChanged); again {
				return
			}
			if f.Suspect != nil {
				f.Suspect(to.HTTP)
			}
			c.fail(failure(to, reads, err))
		},
	}
	proxy.ServeHTTP(&forwardedAnswer{c.w, rc}, c.r.WithContext(ctx))
	return again
}

// forwardedBody is the body of a forwarded call. It has to arrive within readTimeout, as at the owner: an answer of
// the owner does not end the reading here. When it has arrived, the call may take as long as the owner lets it.
type forwardedBody struct {
	io.ReadCloser
	arrived func()
	broken  atomic.Bool // it did not arrive
}

// Read implements io.Reader.
func (b *forwardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.arrived()
	case err != nil:
		b.broken.Store(true)
	}
	return n, err
}

// forwardedAnswer has a bound for each piece of an answer. It leaves the read deadline to forwardedBody: an owner may
// answer before the body has arrived.
type forwardedAnswer struct {
	http.ResponseWriter
	rc *http.ResponseController
}

// Write implements io.Writer.
func (a *forwardedAnswer) Write(b []byte) (int, error) {
	_ = a.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	return a.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (a *forwardedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// failure explains a call that the owner did not answer.
func failure(to Active, reads bool, err error) *interlock.Error {
	op, dialing := errors.AsType[*net.OpError](err)
	if dialing && op.Op == "dial" || reads {
		return ownerSilent(to)
	}
	text := "broke off before it answered"
	if errors.Is(err, errOwnerChanged) || errors.Is(err, errOwnerSilent) {
		text = "has not answered in time"
	}
	return &interlock.Error{
		Code:    interlock.CodeOutcomeUnknown,
		Message: fmt.Sprintf("the owner of the shard, %s, %s", to.HTTP, text),
	}
}

// ownerSilent refuses a call because of an owner that does not answer. It names no active server: a client would go to
// the one that has just failed.
func ownerSilent(to Active) *interlock.Error {
	err := notOwner(Active{})
	err.Message = fmt.Sprintf(
		"the owner of the shard, %s, does not answer: another server takes over within seconds", to.HTTP,
	)
	return err
}

// keys returns the keys of all shards that an owner has.
func (f *Forwarder) keys(ctx context.Context, owner Active) (signed.KeySet, error) {
	ctx, cancel := context.WithTimeout(ctx, peerPatience)
	defer cancel()
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

// DialRESP connects to the owner's door for clients of Redis. The connection is closed when it is the owner's no more.
func (f *Forwarder) DialRESP(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := f.connect(ctx, addr, nil)
	if err != nil {
		return nil, err
	}
	done := f.trips.begin(toRedisDoor(addr), func(error) { _ = conn.Close() })
	return &tripConn{conn, done}, nil
}

type tripConn struct {
	net.Conn
	done func()
}

func (c *tripConn) Close() error {
	c.done()
	return c.Conn.Close()
}

// connect connects to a port of the owner, with TLS if servers have it.
func (f *Forwarder) connect(ctx context.Context, addr string, protocols []string) (net.Conn, error) {
	conn, err := f.dialer.DialContext(ctx, "tcp", addr)
	if err != nil || f.security == nil {
		return conn, err
	}
	security := f.security.Clone()
	security.NextProtos = protocols
	if f.trusted != nil {
		security.RootCAs = f.trusted.latest()
	}
	if security.ServerName == "" {
		security.ServerName, _, _ = net.SplitHostPort(addr)
	}
	secure := tls.Client(conn, security)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

// dial opens a stream at the owner, in the name of the caller. It fails when another server owns the shard, or when
// the owner is known to be silent.
func (f *Forwarder) dial(ctx context.Context, at Location, hello proto.Hello) (proto.ClientLink, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	defer f.trips.begin(toOwnerOf(at, reachTimeout), end)()
	conn, err := f.connect(ctx, at.Active.GRPC, []string{proto.Protocol})
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
