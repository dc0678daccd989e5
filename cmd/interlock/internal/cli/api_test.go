package cli

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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
		{"it was never there", scriptedAnswers{away}, ExitUnreachable, "cannot reach a server"},
		{"it does not come back", scriptedAnswers{breaks, away}, ExitUnreachable, "it may or may not have happened"},
		{"it comes back", scriptedAnswers{breaks, away, away, answers}, ExitOK, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bases := []*url.URL{{Scheme: "http", Host: "127.0.0.1:7420"}}
				c := &API{target: &Target{Bases: bases}, Client: api.New(api.Config{Bases: bases, Transport: &tt.door})}
				_, _, err := c.Insist(
					t.Context(), Request{Method: http.MethodPost, Path: "/v1/commits", ID: "one", Again: true}, false,
				)
				if ExitCode(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.says) {
					t.Errorf("exit code %d: %v", ExitCode(err), err)
				}
				refusal, refused := errors.AsType[*interlock.Error](err)
				if refused && !strings.Contains(RefusalText(refusal), "look before you ask again") {
					t.Errorf("it says no next step: %s", RefusalText(refusal))
				}
			})
		})
	}
}

// A refusal in the place of a stream is explained like any other.
func TestRefusedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuses := scriptedAnswers{func() (*http.Response, error) {
			return &http.Response{
				StatusCode: 503, Header: http.Header{"Content-Type": {"application/problem+json"}},
				Body: io.NopCloser(strings.NewReader(`{"status": 503, "code": "not_owner", "detail": "wait"}`)),
			}, nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		bases := []*url.URL{{Scheme: "http", Host: "127.0.0.1:7420"}, {Scheme: "http", Host: "127.0.0.1:7520"}}
		c := &API{target: &Target{Bases: bases}, Client: api.New(api.Config{Bases: bases, Transport: &refuses})}
		_, err := c.Client.Send(ctx, Request{Method: http.MethodGet, Path: "/v1/admin/backup"})
		if err = c.Explain(err); ExitCode(err) != ExitUnreachable || !strings.Contains(err.Error(), "wait") {
			t.Errorf("exit code %d: %v", ExitCode(err), err)
		}
	})
}

func TestKeyPath(t *testing.T) {
	for in, want := range map[string]string{
		"account:12345": "/v1/keys/account:12345", "repo:web/src/a b.ts": "/v1/keys/repo:web/src/a%20b.ts",
		"a?b#c%": "/v1/keys/a%3Fb%23c%25", "../x": "/v1/keys/../x",
	} {
		if got := KeyPath(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}
