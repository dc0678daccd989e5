package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// wireCases are requests, each with another one behind it. refused: the first one is answered with 400, the connection
// is closed, and the second one is not carried out.
var wireCases = []struct {
	name, request string
	refused       bool
}{
	{
		"a length and chunks",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n" +
			"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", true,
	},
	{
		"chunks and a length",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\ntransfer-ENCODING:chunked\r\n" +
			"content-length: 12\r\n\r\n2\r\n{}\r\n0\r\n\r\n", true,
	},
	{
		"two lengths",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 2\r\n" +
			"\r\n{}", true,
	},
	{
		"a list of lengths",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2, 2\r\n\r\n{}", true,
	},
	{
		"a signed length",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Length: +2\r\n\r\n{}", true,
	},
	{
		"a negative length",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Length: -2\r\n\r\n{}", true,
	},
	{
		"an empty length",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Length:\r\n\r\n", true,
	},
	{
		"chunks twice",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n" +
			"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true,
	},
	{
		"another encoding",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n" +
			"\r\n", true,
	},
	{
		"an encoding that looks like chunked",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", true,
	},
	{
		"bare LF at the end of the head",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n", true,
	},
	{
		"bare LF behind the request line",
		"GET /healthz HTTP/1.1\nHost: localhost\r\n\r\n", true,
	},
	{
		"bare LF behind a field",
		"GET /healthz HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", true,
	},
	{
		"CR inside a line",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\rContent-Length: 3\r\n\r\n", true,
	},
	{
		"a folded field",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b: c\r\n\r\n", true,
	},
	{
		"a folded length",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Length:\r\n\t2\r\n\r\n{}", true,
	},
	{
		"a field before the first that is folded",
		"GET /healthz HTTP/1.1\r\n Host: localhost\r\n\r\n", true,
	},
	{
		"blank before the colon",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", true,
	},
	{
		"a field without a name",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n", true,
	},
	{
		"a field without a colon",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX\r\n\r\n", true,
	},
	{
		"NUL",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n", true,
	},
	{
		"two hosts",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", true,
	},
	{
		"bare LF behind the size of a chunk",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\n{}\r\n" +
			"0\r\n\r\n", true,
	},
	{
		"bare LF behind a chunk",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n" +
			"{}\n0\r\n\r\n", true,
	},
	{
		"a chunk longer than its size",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n" +
			"0\r\n\r\n", true,
	},
	{
		"a signed size",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n+2\r\n" +
			"{}\r\n0\r\n\r\n", true,
	},
	{
		"a size with 0x",
		"POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\n" +
			"{}\r\n0\r\n\r\n", true,
	},
	{
		"a forged refusal",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nInterlock-Refused: x\r\n\r\n", true,
	},

	{
		"a plain call",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", false,
	},
	{
		"a body",
		"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
			"Content-Length: 2\r\n\r\n{}", false,
	},
	{
		"chunks",
		"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
			"Transfer-Encoding: chunked\r\n\r\n1;a=b\r\n{\r\n1\r\n}\r\n0\r\n\r\n", false,
	},
	{
		"chunks with a trailer",
		"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
			"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n", false,
	},
	{
		"an empty line before it",
		"\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", true,
	},
	{
		"a body like a head",
		"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
			"Content-Length: 9\r\n\r\n {\n}\n\n  \n", false,
	},
}

var statusLine = regexp.MustCompile(`HTTP/1\.1 (\d+)`)

// What two readers might take for different requests is refused, over a real connection, in whatever pieces it comes;
// all else is answered, and so is what follows.
func TestStrictRequests(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, c := range wireCases {
		for pieces := range 4 {
			inBubble(t, func(t *testing.T) {
				d := newDoor(t)
				conn := d.listen()()
				first := "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"
				last := "PUT /v1/state/wire:1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
					"Content-Type: application/json\r\nIf-None-Match: *\r\nContent-Length: 2\r\n\r\n{}"
				go func() {
					for rest := []byte(first + c.request + last); len(rest) > 0; {
						n := len(rest)
						if pieces > 0 {
							n = 1 + random.IntN(min(len(rest), 1<<(2*pieces)))
						}
						if _, err := conn.Write(rest[:n]); err != nil {
							return
						}
						rest = rest[n:]
					}
				}()
				answer, err := io.ReadAll(conn)
				var statuses []string
				for _, m := range statusLine.FindAllStringSubmatch(string(answer), -1) {
					statuses = append(statuses, m[1])
				}
				written := d.get("/v1/state/wire:1").status == 200
				switch {
				case c.refused && (len(statuses) != 2 || statuses[0] != "200" || statuses[1] != "400" || written):
					t.Errorf("%s: answers %v (%v), written: %v\n%s", c.name, statuses, err, written, answer)
				case !c.refused && (len(statuses) != 3 || strings.Contains(strings.Join(statuses, " "), "400") || !written):
					t.Errorf("%s: answers %v (%v), written: %v\n%s", c.name, statuses, err, written, answer)
				}
			})
		}
	}
}

// scriptedConn returns bytes in pieces.
type scriptedConn struct {
	net.Conn
	pieces [][]byte
}

func (c *scriptedConn) Read(p []byte) (int, error) {
	if len(c.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.pieces[0])
	if c.pieces[0] = c.pieces[0][n:]; len(c.pieces[0]) == 0 {
		c.pieces = c.pieces[1:]
	}
	return n, nil
}

// Good requests pass unchanged, and whether one is refused does not depend on the pieces in which it comes.
func TestStrictConnIsTransparent(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		var text []byte
		refused := false
		for range 1 + random.IntN(4) {
			c := wireCases[random.IntN(len(wireCases))]
			text = append(text, c.request...)
			if refused = c.refused; refused {
				break
			}
		}
		conn := &scriptedConn{}
		for rest := text; len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			conn.pieces, rest = append(conn.pieces, rest[:n]), rest[n:]
		}
		s := &strictConn{Conn: conn}
		var got []byte
		p := make([]byte, 1+random.IntN(64))
		for {
			n, err := s.Read(p)
			if got = append(got, p[:n]...); err != nil {
				break
			}
		}
		if s.refused != refused || !refused && !bytes.Equal(got, text) {
			t.Fatalf("refused: %v, want %v\n%q\n%q", s.refused, refused, text, got)
		}
		if at := bytes.Index(got, []byte(strictToken)); refused && at < 0 {
			t.Fatalf("no refusal in %q", got)
		}
	}
}

// A server that is none of this package, such as a guard's, gets no request that two readers may read in two ways.
func TestServeStrict(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s was served", r.Method, r.URL)
		}
	})}
	go ServeStrict(s, l)
	defer s.Close()
	for request, want := range map[string]int{
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n": 200,
		"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"0\r\n\r\nDELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n": 400,
		"POST / HTTP/1.1\nHost: localhost\n\n": 400,
	} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, request)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != want {
			t.Errorf("%.40q: %d, want %d", request, res.StatusCode, want)
		}
		conn.Close()
	}
}

// An answer before the end of the request reaches the client whole: the connection is half closed first, not reset.
func TestStrictAnswersBeforeTheBody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = w.Write(bytes.Repeat([]byte("x"), 100_000))
	}))
	s.Listener.Close()
	s.Listener = StrictListener(l, nil)
	s.Start()
	defer s.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n%0600000d", 0)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); err != nil || len(body) != 100_000 {
		t.Errorf("the client reads %d bytes, %v", len(body), err)
	}
	if _, ok := any(&strictConn{}).(interface{ CloseWrite() error }); !ok {
		t.Error("net/http cannot half close the connection")
	}
}
