package proto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/interlockdev/interlock"
)

// Frames over a plain connection: what a gRPC stream carries, without HTTP/2 around it.
// The client begins with the preface and its hello, and the server answers the hello with
// its own, or with an end. From then on each side sends records as it likes.
//
//	client ── "INTERLOCK/1\n" hello ──► server
//	       ◄───────────────── hello ──
//	       ── frame, frame, … ───────►
//	       ◄─────────────── frame, … ──
//
//	┌────────┬─────────────┬─────────┬─
//	│ kind   │ length      │ body    │ the next record ...
//	│ 1 byte │ 4 bytes LE  │         │
//	└────────┴─────────────┴─────────┴─
//
// The body of a frame is a ClientFrame or a ServerFrame of session.proto. A hello is a
// message of the namespace (1), the credential (2) and whether a server forwards it (3), all empty from a server; an
// end is
// one of the code (1) and the message (2). A ping asks for a pong, which has no body either.
// A side that is asked more than once a second need not answer each time.
type recordKind uint8

const (
	recordFrame recordKind = 1 + iota
	recordHello
	recordEnd
	recordPing
	recordPong
)

const (
	// Preface is how a client begins. No client of HTTP begins so.
	Preface = "INTERLOCK/1\n"

	// Protocol is the name of these records where TLS is asked for one (ALPN).
	Protocol = "interlock/1"

	recordHead = 5

	// maxHello bounds a hello, and an end.
	maxHello = 16 << 10

	// lingering is how long a side that has ended a link waits for its pending writes and for
	// the other side to close.
	lingering = time.Second

	// pongEvery bounds how often a ping is answered.
	pongEvery = time.Second
)

// ErrStranger reports that what was read is no record: something else speaks there.
var ErrStranger = errors.New("it does not speak Interlock's session protocol")

// ErrSilent reports that the other side has sent nothing, not even when it was asked.
var ErrSilent = errors.New("the peer does not respond")

// TooLarge reports that a record is longer than the reader takes.
type TooLarge struct{ Length, Limit int }

func (e *TooLarge) Error() string {
	return fmt.Sprintf("a frame has %d bytes, and the maximum is %d", e.Length, e.Limit)
}

// IdleTimeouts is when a side that hears nothing begins to wonder.
type IdleTimeouts struct {
	Ask    time.Duration // after so long without a byte the other side is asked for one
	Expect time.Duration // and after so long more the link has failed
}

// FramedLink is a [Link] over a connection.
type FramedLink[Out, In any] struct {
	conn   net.Conn
	encode func(*Out, []byte) []byte
	decode func(*In, []byte) error
	limit  int // of a frame that is read
	quiet  IdleTimeouts

	in       []byte // what was read: in[r:w] is not used yet
	r, w     int
	deadline time.Time // of the next read
	asked    bool      // a ping is under way
	ponged   time.Time
	spin     spinRead

	writing sync.Mutex
	broken  bool      // a record was written in part: nothing can follow
	until   time.Time // the deadline of the next write

	closed atomic.Bool
	done   chan struct{} // closed when the connection is
}

// ClientFramed is the client's end of a connection, on which nothing was sent yet.
func ClientFramed(conn net.Conn, limit int, quiet IdleTimeouts) *FramedLink[ClientFrame, ServerFrame] {
	return newFramed(conn, (*ClientFrame).AppendTo, (*ServerFrame).Decode, limit, quiet)
}

// ServerFramed is the server's end, from which the preface was read.
func ServerFramed(conn net.Conn, limit int, quiet IdleTimeouts) *FramedLink[ServerFrame, ClientFrame] {
	return newFramed(conn, (*ServerFrame).AppendTo, (*ClientFrame).Decode, limit, quiet)
}

func newFramed[Out, In any](
	conn net.Conn, encode func(*Out, []byte) []byte, decode func(*In, []byte) error, limit int, quiet IdleTimeouts,
) *FramedLink[Out, In] {
	return &FramedLink[Out, In]{
		conn: conn, encode: encode, decode: decode, limit: limit, quiet: quiet,
		in: make([]byte, leastRead), done: make(chan struct{}),
	}
}

// Listen changes when the other side is asked. It comes before the first Send and Recv.
func (l *FramedLink[Out, In]) Listen(quiet IdleTimeouts) {
	l.quiet, l.deadline, l.until = quiet, time.Time{}, time.Time{}
}

// Begin sends the preface and the client's hello, and waits for the server's. The caller
// bounds it by closing the link.
func (l *FramedLink[Out, In]) Begin(hello Hello) error {
	b := append([]byte(Preface), make([]byte, recordHead)...)
	b = appendString(b, 1, hello.Namespace)
	b = appendString(b, 2, hello.Credential)
	b = appendBool(b, 3, hello.Forwarded)
	putHead(b[len(Preface):], recordHello)
	if err := l.write(b); err != nil {
		return err
	}
	_, err := l.Hello()
	return err
}

// Hello waits for the other side's hello. Nothing else comes before it.
func (l *FramedLink[Out, In]) Hello() (hello Hello, err error) {
	kind, body, err := l.next(maxHello)
	switch {
	case err != nil:
		return hello, err
	case kind == recordEnd:
		return hello, ending(body)
	case kind != recordHello:
		return hello, ErrStranger
	}
	err = eachField(string(body), func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&hello.Namespace, f.s)
		case 2<<3 | wireBytes:
			return text(&hello.Credential, f.s)
		case 3<<3 | wireVarint:
			hello.Forwarded = f.v != 0
		}
		return nil
	})
	return hello, err
}

// Welcome answers a client's hello.
func (l *FramedLink[Out, In]) Welcome() error { return l.record(recordHello, nil) }

// Send implements [Link].
func (l *FramedLink[Out, In]) Send(f *Out) error {
	buf := frameBuffers.Get(recordHead)
	defer frameBuffers.Put(buf)
	*buf = l.encode(f, (*buf)[:recordHead])
	putHead(*buf, recordFrame)
	return l.write(*buf)
}

// Recv implements [Link]. An error that wraps [ErrFrame], and a [TooLarge], are about a frame that
// was not taken in any part; the link is of no more use then.
func (l *FramedLink[Out, In]) Recv(f *In) error {
	for {
		kind, body, err := l.next(l.limit)
		if err != nil {
			return err
		}
		switch kind {
		case recordFrame:
			return l.decode(f, body)
		case recordEnd:
			return ending(body)
		case recordPing:
			if now := time.Now(); now.Sub(l.ponged) >= pongEvery {
				l.ponged = now
				if err := l.record(recordPong, nil); err != nil {
					return err
				}
			}
		}
	}
}

// Close implements [Link]. The reason goes to the other side behind what is being sent, if
// that takes it within a second.
func (l *FramedLink[Out, In]) Close(reason *interlock.Error) {
	if l.closed.Swap(true) {
		return
	}
	_ = l.conn.SetReadDeadline(longAgo)
	go func() {
		defer close(l.done)
		defer l.conn.Close()
		until := time.Now().Add(lingering)
		_ = l.conn.SetWriteDeadline(until)
		if reason != nil {
			end := appendString(appendString(make([]byte, recordHead), 1, reason.Code), 2, clipped(reason.Message))
			putHead(end, recordEnd)
			if l.put(end) != nil {
				return
			}
		}
		// Closed with bytes unread, the connection would be reset, and the other side might
		// lose what it has not read.
		half, ok := l.conn.(interface{ CloseWrite() error })
		if !ok || half.CloseWrite() != nil {
			return
		}
		_ = l.conn.SetReadDeadline(until)
		_, _ = io.Copy(io.Discard, l.conn)
	}()
}

// Done is closed when a link that was closed has let its connection go.
func (l *FramedLink[Out, In]) Done() <-chan struct{} { return l.done }

// clipped keeps a message short enough for an end.
func clipped(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), maxHello/2)], "")
}

var longAgo = time.Unix(1, 0)

// ending returns the content of an end record as the error of a Recv.
func ending(body []byte) error {
	var why interlock.Error
	if err := eachField(string(body), func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&why.Code, f.s)
		case 2<<3 | wireBytes:
			return text(&why.Message, f.s)
		}
		return nil
	}); err != nil {
		return err
	}
	if why.Code == "" {
		return io.EOF
	}
	return &why
}

func putHead(record []byte, kind recordKind) {
	record[0] = byte(kind)
	binary.LittleEndian.PutUint32(record[1:], uint32(len(record)-recordHead))
}

func (l *FramedLink[Out, In]) record(kind recordKind, body []byte) error {
	b := append(make([]byte, recordHead, recordHead+len(body)), body...)
	putHead(b, kind)
	return l.write(b)
}

// write sends records unless the link is closed.
func (l *FramedLink[Out, In]) write(b []byte) error {
	if l.closed.Load() {
		return io.EOF
	}
	return l.put(b)
}

// put writes in pieces. Each must get through in the time in which something must be heard.
func (l *FramedLink[Out, In]) put(b []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.broken {
		return io.ErrClosedPipe
	}
	for len(b) > 0 {
		l.extend()
		n, err := l.conn.Write(b[:min(len(b), mostWritten)])
		if err != nil {
			l.broken = true
			return err
		}
		b = b[n:]
	}
	return nil
}

// extend puts the deadline of writes off, unless the link was closed.
func (l *FramedLink[Out, In]) extend() {
	patience := l.quiet.Ask + l.quiet.Expect
	now := time.Now()
	if l.until.Sub(now) >= patience-patience/10 || l.closed.Load() {
		return
	}
	l.until = now.Add(patience)
	_ = l.conn.SetWriteDeadline(l.until)
	if l.closed.Load() { // between, and the deadline of Close has been overwritten
		_ = l.conn.SetWriteDeadline(now.Add(lingering))
	}
}

const (
	// leastRead is how much is read at once on a link on which little comes, mostRead where
	// much does. More is kept only as long as a larger frame needs it.
	leastRead = 4 << 10
	mostRead  = 64 << 10

	// mostWritten is how much is written at once.
	mostWritten = 64 << 10
)

// Ready implements [Peeker]. What has arrived is read all at once, so a frame that is not there
// now comes later; but a read from an encrypted connection returns no more than what the other side
// has sent together.
func (l *FramedLink[Out, In]) Ready() (yes, ok bool) {
	if _, plain := l.conn.(syscall.Conn); !plain {
		return false, false
	}
	b := l.in[l.r:l.w]
	yes = len(b) >= recordHead && recordKind(b[0]) == recordFrame &&
		uint64(len(b)-recordHead) >= uint64(binary.LittleEndian.Uint32(b[1:]))
	return yes, true
}

// next returns the next record. The body is good until the call after it.
func (l *FramedLink[Out, In]) next(limit int) (kind recordKind, body []byte, err error) {
	if err := l.have(recordHead); err != nil {
		return 0, nil, err
	}
	head := l.in[l.r:l.w]
	kind = recordKind(head[0])
	if kind < recordFrame || kind > recordPong {
		return 0, nil, ErrStranger
	}
	n := int(binary.LittleEndian.Uint32(head[1:]))
	if kind != recordFrame {
		limit = min(limit, maxHello)
	}
	if n > limit {
		return 0, nil, &TooLarge{n, limit}
	}
	if err := l.have(recordHead + n); err != nil {
		return 0, nil, err
	}
	body = l.in[l.r+recordHead : l.r+recordHead+n]
	l.r += recordHead + n
	return kind, body, nil
}

// have reads until n bytes are there. The buffer grows with what has come, not with what
// was announced.
func (l *FramedLink[Out, In]) have(n int) error {
	if l.w-l.r >= n {
		return nil
	}
	rest := l.in[l.r:l.w]
	if len(rest) == 0 && len(l.in) > mostRead {
		l.in = make([]byte, mostRead)
	}
	l.r, l.w = 0, copy(l.in, rest)
	for l.w < n {
		if l.w == len(l.in) {
			l.in = append(l.in, make([]byte, min(len(l.in), max(n-l.w, mostRead)))...)
		}
		got, err := l.read(l.in[l.w:])
		l.w += got
		if l.w == len(l.in) && len(l.in) < mostRead {
			l.in = append(l.in, make([]byte, len(l.in))...)
		}
		if err != nil && l.w < n {
			if errors.Is(err, io.EOF) && l.w > 0 {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// read reads what there is. After a silence it asks, and after another it fails.
func (l *FramedLink[Out, In]) read(b []byte) (int, error) {
	for {
		if l.closed.Load() {
			return 0, io.EOF
		}
		if !l.asked {
			// Moved only by a tenth, because each move costs.
			if now := time.Now(); l.deadline.Sub(now) < l.quiet.Ask-l.quiet.Ask/10 {
				l.expect(now.Add(l.quiet.Ask))
				continue // Close may have been between
			}
		}
		n, err := l.receive(b)
		if n > 0 {
			if l.asked {
				l.asked, l.deadline = false, time.Time{}
			}
			return n, nil
		}
		if err == nil {
			continue
		}
		switch {
		case l.closed.Load():
			return 0, io.EOF
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return 0, err
		case l.asked:
			return 0, ErrSilent
		}
		l.asked = true
		l.expect(time.Now().Add(l.quiet.Expect))
		if err := l.record(recordPing, nil); err != nil {
			return 0, err
		}
	}
}

// expect sets until when a read waits.
func (l *FramedLink[Out, In]) expect(until time.Time) {
	l.deadline = until
	_ = l.conn.SetReadDeadline(until)
}

// IsPreface reports whether a client that has sent these bytes may be beginning a framed link; all
// of the preface is there when it is certain.
func IsPreface(b []byte) (maybe, certain bool) {
	n := min(len(b), len(Preface))
	maybe = bytes.Equal(b[:n], []byte(Preface[:n]))
	return maybe, maybe && n == len(Preface)
}
