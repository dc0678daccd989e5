package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/interlockdev/interlock"
)

// strictConn reads the requests of a connection of HTTP/1 before net/http does, and lets none through that two readers
// might take for different ones: net/http is forgiving where a proxy in front of it may not be, so a request could hide
// in the body of another one.
//
//	bytes ─► head, line by line ─► body, by its length ─► head ...     to net/http, as they are
//	              │                      │ chunked: size, data, trailer
//	              └──────────┬───────────┘
//	                      refused: in place of the rest, a request of our own that strictHandler answers with 400, and
//	                      the end of the connection
//
// Refused are: a length with chunks, or twice; an encoding of the transfer other than "chunked"; a line that ends with
// LF alone; a field that is folded, has no name, or white space before its colon; two Hosts; and malformed chunks.
// What was answered before stays answered. Refusals go in the order of the requests, because net/http reads them so.
type strictConn struct {
	net.Conn
	state   strictState
	line    []byte // the begin of the line that is being read
	head    strictHead
	left    uint64 // bytes that are no line: of a body, or of a chunk
	refusal []byte // what is still to be read in place of the rest
	refused bool
}

// strictState is what the next line is.
type strictState uint8

const (
	inRequestLine strictState = iota
	inField
	inChunkSize
	afterChunk
	inTrailer
)

// strictHead is what was seen of a head.
type strictHead struct {
	length, chunked, host bool
	bytes                 uint64
}

const (
	// strictHeader is the field of our own request. Its value begins with strictToken, which no client knows.
	strictHeader = "Interlock-Refused"
	// strictLine bounds what is kept of a line. net/http refuses a longer head by itself.
	strictLine = 64 << 10
)

var strictToken = func() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}()

// Read implements net.Conn.
func (c *strictConn) Read(p []byte) (int, error) {
	if len(c.refusal) > 0 {
		n := copy(p, c.refusal)
		c.refusal = c.refusal[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if c.refused { // net/http drains what is left; it must not look like a request
		return n, err
	}
	if good, why := c.check(p[:n]); why != "" {
		c.refused = true
		c.refusal = []byte("GET /refused HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + strictHeader + ": " +
			strictToken + why + "\r\n\r\n")
		if good == 0 {
			return c.Read(p)
		}
		return good, nil
	}
	return n, err
}

// CloseWrite ends what is sent, and leaves what is still to be read: so net/http ends a connection after a
// request that it has not read whole, and the client has its answer.
func (c *strictConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// check goes through the next bytes. With a reason for a refusal it returns how many come before the refused request.
// If net/http has a part of that already, it refuses the rest by itself: our own request is no continuation of one.
func (c *strictConn) check(b []byte) (good int, why string) {
	begun := 0 // where the request that is being read begins in b
	for i := 0; i < len(b); {
		if c.left > 0 {
			n := min(uint64(len(b)-i), c.left)
			c.left -= n
			if i += int(n); c.left == 0 && c.state == inRequestLine {
				begun = i
			}
			continue
		}
		line, _, whole := bytes.Cut(b[i:], []byte("\n"))
		if !whole {
			c.line = append(c.line, line[:min(len(line), strictLine-len(c.line))]...)
			break
		}
		i += len(line) + 1
		if len(c.line) > 0 {
			line = append(c.line, line...)
			c.line = nil
		}
		if why := c.endLine(line); why != "" {
			return begun, why
		}
		if c.state == inRequestLine && c.left == 0 {
			begun = i
		}
	}
	return len(b), ""
}

// endLine goes through a whole line, and sets how many bytes follow that are no line.
func (c *strictConn) endLine(line []byte) (why string) {
	line, ok := bytes.CutSuffix(line, []byte("\r"))
	if !ok || bytes.IndexByte(line, '\r') >= 0 || bytes.IndexByte(line, 0) >= 0 {
		return "a line ends with CR and LF, and has neither of them inside"
	}
	switch c.state {
	case inRequestLine:
		if len(line) == 0 {
			return "a request begins with its line, and not with an empty one"
		}
		c.state, c.head = inField, strictHead{}
	case inField:
		if len(line) == 0 {
			return c.endHead()
		}
		return c.head.field(line)
	case inChunkSize:
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(size), 16, 63)
		if err != nil {
			return "a chunk begins with its size in hexadecimal digits"
		}
		if c.left, c.state = n, afterChunk; n == 0 {
			c.state = inTrailer
		}
	case afterChunk:
		if c.state = inChunkSize; len(line) > 0 {
			return "a chunk is longer than its size"
		}
	case inTrailer:
		if len(line) == 0 {
			c.state = inRequestLine
		}
	}
	return ""
}

// endHead decides what follows a head.
func (c *strictConn) endHead() (why string) {
	switch h := &c.head; {
	case h.length && h.chunked:
		return "Content-Length and Transfer-Encoding are two lengths of one body: send one of them"
	case h.chunked:
		c.state = inChunkSize
	default:
		c.left, c.state = h.bytes, inRequestLine
	}
	return ""
}

var (
	lengthField   = []byte("Content-Length")
	encodingField = []byte("Transfer-Encoding")
	hostField     = []byte("Host")
	strictField   = []byte(strictHeader)
	chunked       = []byte("chunked")
)

// field goes through a field of the head.
func (h *strictHead) field(line []byte) (why string) {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
		return "a field is a name, a colon and a value on one line, and is not folded"
	}
	value = bytes.Trim(value, " \t")
	switch {
	case bytes.EqualFold(name, lengthField):
		n, err := strconv.ParseUint(string(value), 10, 63)
		if h.length || err != nil {
			return "Content-Length occurs once, and is a number"
		}
		h.length, h.bytes = true, n
	case bytes.EqualFold(name, encodingField):
		if h.chunked || !bytes.EqualFold(value, chunked) {
			return "Transfer-Encoding occurs once, and is chunked"
		}
		h.chunked = true
	case bytes.EqualFold(name, hostField):
		if h.host {
			return "Host occurs once"
		}
		h.host = true
	case bytes.EqualFold(name, strictField):
		return "the field " + strictHeader + " is the server's own"
	}
	return ""
}

// strictHandler answers what a strictConn has put in place of a refused request.
func strictHandler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		why, ok := strings.CutPrefix(r.Header.Get(strictHeader), strictToken)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close")
		refuseLogin(w, &interlock.Error{
			Code: interlock.CodeInvalidRequest, Message: "the request is malformed and was not carried out: " + why,
		})
	})
}

// ServeStrict serves the connections of a listener as StrictListener returns them. The security is the server's.
func ServeStrict(s *http.Server, l net.Listener) error {
	s.Handler = strictHandler(s.Handler)
	return s.Serve(StrictListener(l, s.TLSConfig))
}

// StrictListener returns the connections of a listener for net/http. It lets no request through that is malformed, or
// that two readers might take for different ones; with security it speaks TLS, and HTTP/2 if the client does.
func StrictListener(l net.Listener, security *tls.Config) net.Listener {
	s := &strictListener{
		Listener: l, security: security, conns: make(chan net.Conn), failed: make(chan error, 1),
		closed: make(chan struct{}),
	}
	if security != nil {
		go s.greet()
	}
	return s
}

// strictListener wraps what a listener accepts.
type strictListener struct {
	net.Listener
	security *tls.Config
	conns    chan net.Conn // with TLS, after the handshake
	failed   chan error    // of the listener
	once     sync.Once
	closed   chan struct{}
}

// Accept implements net.Listener.
func (l *strictListener) Accept() (net.Conn, error) {
	if l.security == nil {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		return &strictConn{Conn: conn}, nil
	}
	select {
	case conn := <-l.conns:
		return conn, nil
	case err := <-l.failed:
		return nil, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// greet accepts connections, and begins TLS on each by itself: a slow one delays no other.
func (l *strictListener) greet() {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			select {
			case l.failed <- err: // net/http tries again later, if that may help
			case <-l.closed:
				return
			}
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
			defer cancel()
			secure := tls.Server(conn, l.security)
			if secure.HandshakeContext(ctx) != nil {
				_ = conn.Close()
				return
			}
			next := net.Conn(secure) // net/http speaks HTTP/2, which has one way to tell lengths
			if secure.ConnectionState().NegotiatedProtocol != "h2" {
				next = &strictConn{Conn: secure}
			}
			select {
			case l.conns <- next:
			case <-l.closed:
				_ = secure.Close()
			}
		}()
	}
}

// Close implements net.Listener.
func (l *strictListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
