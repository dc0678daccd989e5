package main

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
)

// scriptedAnswers answers calls, one function each; the last one answers all further ones.
type scriptedAnswers []func() (*http.Response, error)

func (d *scriptedAnswers) RoundTrip(*http.Request) (*http.Response, error) {
	next := (*d)[0]
	if len(*d) > 1 {
		*d = (*d)[1:]
	}
	return next()
}

// A server that dies with a request in its hands is asked again under the same id. As long as it
// does not answer, it is not known what became of the request: that no server can be reached now
// does not mean that nothing happened.
func TestServerDiesWithARequest(t *testing.T) {
	breaks := func() (*http.Response, error) { return nil, io.EOF }
	away := func() (*http.Response, error) { return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED} }
	answers := func() (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{}`))}, nil
	}
	for _, tt := range []struct {
		name string
		door scriptedAnswers
		code int
		says string
	}{
		{"it was never there", scriptedAnswers{away}, exitUnreachable, "cannot reach a server"},
		{"it does not come back", scriptedAnswers{breaks, away}, exitUnreachable, "it may or may not have happened"},
		{"it comes back", scriptedAnswers{breaks, away, away, answers}, exitOK, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := &url.URL{Scheme: "http", Host: "127.0.0.1:7420"}
				c := &httpAPI{target: &target{base: base}, client: api.New(api.Config{Base: base, Transport: &tt.door})}
				_, _, err := c.insist(
					t.Context(), request{Method: http.MethodPost, Path: "/v1/commits", ID: "one", Again: true}, false,
				)
				if exitCode(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.says) {
					t.Errorf("exit code %d: %v", exitCode(err), err)
				}
				refusal, refused := errors.AsType[*interlock.Error](err)
				if refused && !strings.Contains(refusalText(refusal), "look before you ask again") {
					t.Errorf("it says no next step: %s", refusalText(refusal))
				}
			})
		})
	}
}

// A server hangs up at an address with http: that may be a server that speaks TLS.
func TestServerHangsUp(t *testing.T) {
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.TLS = &tls.Config{NextProtos: []string{"interlock/1"}}
	stranger.StartTLS()
	defer stranger.Close()
	address := stranger.Listener.Addr().String()
	p := startProc(
		t, append(cleanEnvironment(), "INTERLOCK_URL=http://"+address, "INTERLOCK_GRPC="+address), "run", "a", "--", "true",
	)
	if out := p.ends(exitUnreachable); !strings.Contains(out, "use https://"+address) ||
		strings.Contains(out, "interlock serve") {
		t.Errorf("it said:\n%s", out)
	}
}

// Where no TLS comes about nothing was sent, and the next step is another than to start a
// server.
func TestServerIsNotTrusted(t *testing.T) {
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.TLS = &tls.Config{NextProtos: []string{"interlock/1", "http/1.1"}}
	stranger.StartTLS()
	defer stranger.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for _, tt := range []struct{ address, says string }{
		{stranger.Listener.Addr().String(), "is not trusted (x509: "},
		{plain.Listener.Addr().String(), "does not speak TLS: use an address with http"},
	} {
		for _, command := range [][]string{{"ls"}, {"lock", "a"}, {"run", "a", "--", "true"}} {
			p := startProc(
				t, append(cleanEnvironment(), "INTERLOCK_URL=https://"+tt.address, "INTERLOCK_GRPC="+tt.address), command...,
			)
			if out := p.ends(exitUnreachable); !strings.Contains(out, tt.says) || strings.Contains(out, "interlock serve") {
				t.Errorf("%s: it said:\n%s", command[0], out)
			}
		}
	}
}
