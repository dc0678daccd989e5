package remotetest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// Fault is what becomes of a request over HTTP.
type Fault int

const (
	// Refused: the engine is too busy, and does nothing.
	Refused Fault = iota + 1
	// Answered500: the engine carries the request out, and answers with an error.
	Answered500
	// Unanswered: the engine carries the request out, and its answer never comes.
	Unanswered
)

// HTTPProxy stands before an engine with an interface over HTTP, and lets requests fail.
type HTTPProxy struct {
	Addr string

	mu    sync.Mutex // guards the fields below
	fault Fault
	left  int           // requests that are to fail
	done  chan struct{} // closed when none is left
}

// NewHTTPProxy starts one before an address.
func NewHTTPProxy(t testing.TB, to string) *HTTPProxy {
	t.Helper()
	p := &HTTPProxy{}
	engine := &httputil.ReverseProxy{
		// The host stays, because signatures are of it.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: to})
			r.Out.Host = r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch fault := p.next(); fault {
		case Refused:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>")
		case Answered500, Unanswered:
			engine.ServeHTTP(httptest.NewRecorder(), r)
			if fault == Answered500 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			<-r.Context().Done() // the client has given up
		default:
			engine.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	p.Addr = strings.TrimPrefix(s.URL, "http://")
	return p
}

// Fail lets the next n requests fail, and returns when they have.
func (p *HTTPProxy) Fail(fault Fault, n int) {
	p.mu.Lock()
	p.fault, p.left = fault, n
	done := make(chan struct{})
	p.done = done
	p.mu.Unlock()
	<-done
}

// next decides about a request.
func (p *HTTPProxy) next() Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 {
		return 0
	}
	if p.left--; p.left == 0 {
		close(p.done)
	}
	return p.fault
}

// Faults are all kinds, as HistoryOfFaults wants them. There are fewer of each than a journal's patience endures.
func (p *HTTPProxy) Faults() map[string]func() {
	return map[string]func(){
		"busy":       func() { p.Fail(Refused, 6) },
		"error":      func() { p.Fail(Answered500, 6) },
		"unanswered": func() { p.Fail(Unanswered, 2) },
	}
}

// JournalOfFaults uses journals of an engine at an address while requests fail in all ways. connect makes a store by
// way of a proxy.
func JournalOfFaults(t *testing.T, to string, connect func(name, proxy string) *remote.Store) {
	for _, name := range []string{"busy", "error", "unanswered"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := NewHTTPProxy(t, to)
			s, fail := connect(name, p.Addr), p.Faults()[name]
			want := ""
			for owner := range 2 {
				j, err := s.Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if owner > 0 {
					want += " "
				}
				work := func(doing string, do func() error) {
					t.Helper()
					failed := make(chan struct{})
					go func() {
						fail()
						close(failed)
					}()
					for {
						if err := do(); err != nil {
							t.Fatalf("%s: %v", doing, err)
						}
						select {
						case <-failed:
							return
						default:
						}
					}
				}
				n := 0
				work("append", func() error {
					n++
					text := fmt.Sprint(owner, "-", n)
					want += " " + text
					return j.Append(t.Context(), j.Tail()+1, [][]byte{[]byte(text)})
				})
				work("barrier", func() error { return j.Barrier(t.Context()) })
				work("keep", func() error { n++; return j.Kept("ring").Save(fmt.Append(nil, n)) })
				work("snapshot", func() error {
					return j.SaveSnapshot(t.Context(), 1, func(w io.Writer) error {
						_, err := io.WriteString(w, want)
						return err
					})
				})
				var list []string
				work("read", func() error {
					list = nil
					return j.Read(t.Context(), j.First(), func(e journal.Entry) error {
						list = append(list, string(e.Data))
						return nil
					})
				})
				if got := strings.Join(list, " "); got != want {
					t.Errorf("the journal holds %q, want %q", got, want)
				}
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
