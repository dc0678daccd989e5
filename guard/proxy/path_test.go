package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/busy"
)

// None of these gets around a rule: what reaches the API is a path that a rule
// allowed, spelled as the rule saw it. They are sent as they stand.
func TestTrickyPaths(t *testing.T) {
	r := newRig(t, routes)
	l := r.acquire("a", "account:1")
	for _, tt := range []struct {
		target string
		status int
	}{
		{"/accounts/1/fees", 200},
		{"/accounts/%31/fees", 200}, // the same path: it is sent on as /accounts/1/fees
		{"/%61ccounts/1/fees", 200},
		{"http://elsewhere/accounts/1/fees", 403},
		{"http://127.0.0.1/accounts/1/fees", 200},
		{"//accounts/1/fees", 400},
		{"/accounts//1/fees", 400},
		{"/accounts/1//fees", 400},
		{"/accounts/./1/fees", 400},
		{"/accounts/2/../1/fees", 400},
		{"/accounts/1/fees/../../2/fees", 400},
		{"/accounts/1/%2e%2e/2/fees", 400},
		{"/accounts/1/%2E/fees", 400},
		{"/accounts/1%2F..%2F2/fees", 400},
		{"/accounts%2F1/fees", 400},
		{"/accounts/1%2ffees", 400},
		{`/accounts\1\fees`, 400},
		{"/accounts/1%5Cfees", 400},
		{"/accounts/1%252Ffees", 400},
		{"/accounts/1/%252e%252e/fees", 400},
		{"/accounts/1;id=2/fees", 400},
		{"/accounts/1/fees;x", 400},
		{"/accounts/1%3Bid=2/fees", 400},
		{"/accounts/1%00/fees", 400},
		{"/accounts/1%0A/fees", 400},
		{"/accounts/1%7F/fees", 400},
		{"/accounts/1/fees%0d%0aX: y", 400},
		{"/accounts/1/f%e9es", 400},
		{"/accounts/1/%zz", 400},
		{"/accounts/1/fees/", 403},
		{"/accounts/1/Fees", 403},
		{"/ACCOUNTS/1/fees", 403},
		{"/accounts/01/fees", 403},
		{"/accounts/+1/fees", 403},
		{"/accounts/-1/fees", 403},
		{"/accounts/1e0/fees", 403},
		{"/accounts/1%20/fees", 403},
		{"/accounts/%EF%BC%91/fees", 403}, // a digit one of another width
		{"/accounts/1/fees%3Fx=1", 403},
		{"/accounts/1/fees#x", 403},
		{"/v2/accounts/1/fees", 403},
		{"/accounts/1/fees?/../../2/fees", 200},
		{"*", 400},
		{"accounts/1/fees", 400},
		{"", 400},
	} {
		status, _ := r.raw(fmt.Sprintf(
			"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n%s: %s\r\n\r\n", tt.target,
			headerLease, l.id,
		))
		if status != tt.status {
			t.Errorf("%q: answered %d, want %d", tt.target, status, tt.status)
		}
		calls := r.api.calls()
		if want := tt.status == 200; (len(calls) == 1) != want {
			t.Errorf("%q: the API saw %v", tt.target, calls)
		}
		for _, c := range calls {
			if sent, _, _ := strings.Cut(c.uri, "?"); sent != "/v2/accounts/1/fees" || c.header.Get(headerKey) != "account:1" {
				t.Errorf("%q: the API saw %s under %s", tt.target, c.uri, c.header.Get(headerKey))
			}
		}
	}
}

// Two readings of where a request ends must not carry a second one past the proxy.
func TestSmuggling(t *testing.T) {
	const hidden = "POST /v2/accounts/2/fees HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"
	for name, rest := range map[string]string{
		"both lengths": fmt.Sprintf(
			"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", len(hidden)+5, hidden,
		),
		"two lengths":       "Content-Length: 0\r\nContent-Length: 5\r\n\r\n" + hidden,
		"a list of lengths": "Content-Length: 0, 5\r\n\r\n" + hidden,
		"a signed length":   "Content-Length: +0\r\n\r\n" + hidden,
		"no encoding":       "Transfer-Encoding: xchunked\r\n\r\n" + hidden,
		"twice encoded":     "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden,
		"a space":           "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden,
		"a folded header":   "X: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + hidden,
		"a bare return":     "X: y\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + hidden,
		"a chunk too long":  "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" + hidden,
		"a trailer": "Transfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n0\r\nAuthorization: mine\r\n\r\n" +
			hidden,
		"hop by hop":         "Connection: close, Interlock-Fence, Authorization\r\nContent-Length: 0\r\n\r\n" + hidden,
		"an unlisted header": "Connection: Content-Length\r\nContent-Length: 3\r\n\r\nabc" + hidden,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, routes)
			l := r.acquire("a", "account:1")
			r.raw("POST /accounts/1/fees HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headerLease + ": " + l.id + "\r\n" + rest +
				"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
			for i, c := range r.api.calls() {
				if i > 0 || c.uri != "/v2/accounts/1/fees" || c.header.Get(headerFence) != l.fence ||
					c.header.Get("Authorization") != "Bearer "+secret || strings.Contains(c.body, "POST") {
					t.Errorf("call %d: the API saw %s %s %v %q", i, c.method, c.uri, c.header, c.body)
				}
			}
		})
	}
}

// raw sends bytes to the proxy and returns the first answer.
func (r *rig) raw(request string) (status int, body string) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		r.t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(busy.Patience()))
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		r.t.Fatalf("%q: %v", request, err)
	}
	text, _ := io.ReadAll(res.Body)
	_, _ = io.Copy(io.Discard, in) // until the proxy has done with the connection
	return res.StatusCode, string(text)
}

// The forwarded path is the matched one, however a server cleans or decodes it.
func FuzzPath(f *testing.F) {
	for _, s := range []string{
		"/", "/a/b", "/a%20b/%C3%A9", "/%25", "/a/../b", "/a//b/", "/%2e", "/a%2Fb", "/a;b", "/a%252e", "/%",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, escaped string) {
		segments, err := splitPath(escaped)
		if err != nil {
			return
		}
		plain, again := joinPath(segments)
		u, err := url.ParseRequestURI(again)
		if err != nil {
			t.Fatalf("%q is sent as %q: %v", escaped, again, err)
		}
		if u.Path != plain || u.EscapedPath() != again || u.RawQuery != "" || u.Host != "" {
			t.Errorf("%q is sent as %q, which is read as %q", escaped, again, u.Path)
		}
		if clean := path.Clean(plain); clean != strings.TrimSuffix(plain, "/") && clean != plain {
			t.Errorf("%q is sent as %q, which is cleaned to %q", escaped, plain, clean)
		}
		if twice, err := url.PathUnescape(plain); err == nil && twice != plain {
			t.Errorf("%q is sent as %q, which can be decoded to %q", escaped, again, twice)
		}
		round, err := splitPath(again)
		if err != nil || strings.Join(round, "/") != strings.Join(segments, "/") {
			t.Errorf("%q is sent as %q: %v %v", escaped, again, round, err)
		}
	})
}
