package resp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// rig is a door in front of a server in the same process, in fake time.
type rig struct {
	*testing.T
	store memjournal.Store
	shard *shard.Shard
	api   *server.Server
	door  *Server
	conns map[string]*peer

	pass        func(time.Duration) // lets time pass
	config      Config
	credentials *server.Credentials
}

func inBubble(t *testing.T, cfg Config, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, config: cfg, pass: time.Sleep}
		r.start()
		defer r.stop()
		test(r)
	})
}

func (r *rig) start() {
	r.Helper()
	j, err := r.store.Open(r.Context())
	observer := server.NewObserver(nil, nil)
	if err == nil {
		r.shard, err = shard.Open(r.Context(), shard.Config{Journal: j, Observer: observer})
	}
	if err == nil {
		r.api, err = server.New(server.Config{Shard: r.shard, Observer: observer, Credentials: r.credentials})
	}
	if err != nil {
		r.Fatal(err)
	}
	if r.config.Log == nil {
		r.config.Log = slog.New(slog.DiscardHandler)
	}
	r.config.API = func() *server.Server { return r.api }
	r.door, r.conns = NewServer(r.config), map[string]*peer{}
}

func (r *rig) stop() {
	r.door.Shutdown(context.Background())
	for _, p := range r.conns {
		_ = p.conn.Close()
	}
	_ = r.shard.Close(context.Background())
}

// restart ends the process and begins another one over the same journal.
func (r *rig) restart() {
	r.stop()
	r.start()
}

// peer is the client's end of a connection.
type peer struct {
	conn net.Conn
	in   *bufio.Reader
}

func newPeer(conn net.Conn) *peer { return &peer{conn: conn, in: bufio.NewReader(conn)} }

// peer returns a client's connection, and makes it if it is not there.
func (r *rig) peer(name string) *peer {
	p := r.conns[name]
	if p == nil {
		near, far := net.Pipe()
		p = newPeer(near)
		r.conns[name] = p
		go r.door.enter(far).serve()
	}
	return p
}

// do sends a command of words and returns the answer.
func (r *rig) do(client string, words ...string) string {
	r.Helper()
	p := r.peer(client)
	if _, err := p.conn.Write(encode(words)); err != nil {
		r.Fatalf("%s %q: %v", client, words, err)
	}
	return r.answer(p)
}

func (r *rig) answer(p *peer) string {
	r.Helper()
	got, err := readAnswer(p.in)
	if err != nil {
		r.Fatal(err)
	}
	return got
}

// matches compares an answer. A want that ends in * is its beginning.
func matches(got, want string) bool {
	begin, open := strings.CutSuffix(want, "*")
	return got == want || open && strings.HasPrefix(got, begin)
}

// wants sends a command and compares the answer. A want that ends in * is its beginning.
func (r *rig) wants(client, command, want string) {
	r.Helper()
	if got := r.do(client, strings.Fields(command)...); !matches(got, want) {
		r.Errorf("%s> %s\n%s\nwant %s", client, command, got, want)
	}
}

// http makes a call of the HTTP API and returns its status and its body.
func (r *rig) http(method, path, body string) (int, string) {
	r.Helper()
	q := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
	q.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	r.api.HTTPHandler().ServeHTTP(w, q)
	return w.Code, w.Body.String()
}

// metric returns a figure of the server.
func (r *rig) metric(name, label string) float64 {
	r.Helper()
	_, body := r.http(http.MethodGet, "/metrics", "")
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, name+"{"+label) {
			v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.Index(line, "}")+1:]), 64)
			if err != nil {
				r.Fatal(err)
			}
			return v
		}
	}
	return 0
}

// hold takes a lease over HTTP, and returns the answer.
func (r *rig) hold(key, agent string) string {
	r.Helper()
	request := fmt.Sprintf(`{"claims": [{"key": %q}], "agent": %q}`, key, agent)
	status, body := r.http(http.MethodPost, "/v1/leases", request)
	if status != http.StatusOK {
		r.Fatalf("%d %s", status, body)
	}
	return body
}

// part returns a member of a JSON text.
func part(body, name string) string {
	_, rest, _ := strings.Cut(body, `"`+name+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

func encode(words []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b
}

// readAnswer reads one answer as a text: its sign and its value, nil, or [..] for a list.
func readAnswer(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	switch n, _ := strconv.Atoi(line[1:]); line[0] {
	case '_':
		return "nil", nil
	case '$':
		if n < 0 {
			return "nil", nil
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(in, b); err != nil {
			return "", err
		}
		return "$" + string(b[:n]), nil
	case '*', '%':
		if line[0] == '%' {
			n *= 2
		}
		list := make([]string, n)
		for i := range list {
			if list[i], err = readAnswer(in); err != nil {
				return "", err
			}
		}
		return "[" + strings.Join(list, " ") + "]", nil
	}
	return line, nil
}

// conversation reads commands and answers from a file of testdata.
func conversation(t *testing.T, file string) (steps [][3]string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		switch client, command, asks := strings.Cut(line, "> "); {
		case line == "" || line[0] == '#':
		case asks:
			steps = append(steps, [3]string{client, command})
		default:
			steps[len(steps)-1][2] = line
		}
	}
	return steps
}
