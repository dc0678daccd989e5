package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/interlockdev/interlock"
)

// answering answers calls, one function each; the last one answers all further ones.
type answering []func() (*http.Response, error)

func (d *answering) RoundTrip(*http.Request) (*http.Response, error) {
	next := (*d)[0]
	if len(*d) > 1 {
		*d = (*d)[1:]
	}
	return next()
}

// A server that dies with a request in its hands is asked again under the same id. As
// long as it does not answer, it is not known what became of the request: that nobody
// can be reached now does not say that nothing happened.
func TestServerDiesWithARequest(t *testing.T) {
	breaks := func() (*http.Response, error) { return nil, io.EOF }
	away := func() (*http.Response, error) { return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED} }
	answers := func() (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{}`))}, nil
	}
	for _, tt := range []struct {
		name string
		door answering
		code int
		says string
	}{
		{"it was never there", answering{away}, exitUnreachable, "cannot reach a server"},
		{"it does not come back", answering{breaks, away}, exitUnreachable, "it may or may not have happened"},
		{"it comes back", answering{breaks, away, away, answers}, exitOK, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := &url.URL{Scheme: "http", Host: "127.0.0.1:7420"}
				c := &api{target: &target{base: base}, http: &http.Client{Transport: &tt.door}}
				_, _, err := c.insist(t.Context(), request{method: http.MethodPost, path: "/v1/commits", id: "one", again: true}, false)
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
