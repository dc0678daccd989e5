package api_test

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
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
)

// script is a transport that answers the n-th request by its n-th word, and all further ones
// by the last.
type script struct {
	words []string
	sent  int
}

func (s *script) RoundTrip(*http.Request) (*http.Response, error) {
	word := s.words[min(s.sent, len(s.words)-1)]
	s.sent++
	answer := &http.Response{
		StatusCode: 200, Status: "200 OK", Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")),
	}
	switch word {
	case "away":
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	case "broken":
		return nil, io.ErrUnexpectedEOF
	case "foreign":
		answer.StatusCode, answer.Status = 404, "404 Not Found"
	case "ok":
	default: // a code
		answer.StatusCode = 409
		answer.Header.Set("Content-Type", "application/problem+json")
		answer.Body = io.NopCloser(strings.NewReader(
			`{"title":"T","code":"` + word + `","advice":{"message":"M","retry_after_ms":7}}`,
		))
	}
	return answer, nil
}

// counter is a Pace that does not wait.
type counter struct{ waits, advised int }

func (c *counter) Wait(_ context.Context, advised time.Duration) error {
	c.waits++
	c.advised += int(advised.Milliseconds())
	return nil
}

// outcome is one word for how a request ended.
func outcome(err error) string {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return string(p.Code)
	}
	if _, ok := errors.AsType[*api.Stranger](err); ok {
		return "foreign"
	}
	switch failed, ok := errors.AsType[*api.Unanswered](err); {
	case err == nil:
		return "ok"
	case ok && failed.Sent():
		return "unknown"
	case ok:
		return "unreachable"
	}
	return err.Error()
}

func TestRepeat(t *testing.T) {
	for _, tt := range []struct {
		method string
		words  string
		want   string
		sent   int
	}{
		{http.MethodPost, "ok", "ok", 1},
		{http.MethodPost, "held", "held", 1},
		{http.MethodPost, "foreign", "foreign", 1},
		{http.MethodPost, "away", "unreachable", 1},
		{http.MethodPost, "broken away away ok", "ok", 4},
		{http.MethodPost, "broken away", "unknown", 8},
		{http.MethodPost, "broken held", "held", 2},
		{http.MethodPost, "overloaded shutting_down not_owner outcome_unknown ok", "ok", 5},
		{http.MethodPost, "overloaded", "overloaded", 8},
		{http.MethodGet, "broken", "unreachable", 1},
	} {
		t.Run(tt.method+" "+tt.words, func(t *testing.T) {
			s := &script{words: strings.Fields(tt.words)}
			c := api.New(api.Config{Bases: []*url.URL{{Scheme: "http", Host: "h"}}, Transport: s})
			_, err := c.Repeat(t.Context(), api.Request{Method: tt.method, Path: "/", ID: "1"}, false, &counter{})
			if got := outcome(err); got != tt.want || s.sent != tt.sent {
				t.Errorf("it ended with %s after %d tries, want %s after %d", got, s.sent, tt.want, tt.sent)
			}
		})
	}
}

// A place in line outlives a server that is away for a moment.
func TestRepeatInLine(t *testing.T) {
	s, pace := &script{words: []string{"away", "overloaded", "ok"}}, &counter{}
	c := api.New(api.Config{Bases: []*url.URL{{Scheme: "http", Host: "h"}}, Transport: s})
	if _, err := c.Repeat(t.Context(), api.Request{Method: http.MethodGet, Path: "/"}, true, pace); err != nil ||
		s.sent != 3 || pace.advised != 7 {
		t.Errorf("%v after %d tries, with %d ms of advised pauses", err, s.sent, pace.advised)
	}
}

func TestProblem(t *testing.T) {
	c := api.New(api.Config{Bases: []*url.URL{{Scheme: "http", Host: "h"}}, Transport: &script{words: []string{"held"}}})
	answer, err := c.Do(t.Context(), api.Request{Method: http.MethodGet, Path: "/"})
	p, ok := errors.AsType[*api.Problem](err)
	if !ok || p.Code != interlock.CodeHeld || p.Status != 409 || p.Detail != "T" || p.Advice.Message != "M" ||
		p.Advice.RetryAfter != 7*time.Millisecond {
		t.Errorf("%+v", err)
	}
	if answer == nil || !strings.Contains(string(answer.Body), `"held"`) {
		t.Error("the document is missing")
	}
}
