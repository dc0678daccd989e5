package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type answer = func(*http.Request) (*http.Response, error)

// answers is a transport with an answer for each try; the last one stays.
type answers struct {
	list []answer
	body []string
	at   []time.Time
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	packed, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, _ = io.Copy(&b, packed)
	a.body, a.at = append(a.body, b.String()), append(a.at, time.Now())
	return a.list[min(len(a.at), len(a.list))-1](r)
}

func status(code int, header http.Header, body string) answer {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func TestTraces(t *testing.T) {
	down := func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }
	hang := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	ok := status(http.StatusOK, nil, "")
	busy := status(http.StatusServiceUnavailable, http.Header{"Retry-After": {"20"}}, "busy")
	for _, tt := range []struct {
		name  string
		list  []answer
		tries int
		took  time.Duration
		want  string // of the error
	}{
		{"accepted", []answer{status(200, nil, `{"partialSuccess":{}}`)}, 1, 0, ""},
		{"a proxy's words", []answer{status(200, nil, "OK")}, 1, 0, ""},
		{"none rejected", []answer{
			status(200, nil, `{"partialSuccess":{"rejectedSpans":"0","errorMessage":"slow down"}}`),
		}, 1, 0, ""},
		{"some rejected", []answer{
			status(200, nil, `{"partialSuccess":{"rejectedSpans":7}}`),
		}, 1, 0, "7 spans are rejected"},
		{"refused for good", []answer{
			status(400, nil, "bad\x1b[0m body"),
		}, 1, 0, "400 Bad Request: bad"},
		{"a redirect", []answer{
			status(307, http.Header{"Location": {"http://elsewhere/"}}, ""),
		}, 1, 0, "307"},
		{"down for a while", []answer{down, down, ok}, 3, 3 * time.Second, ""},
		{"down", []answer{down}, 4, 7 * time.Second, "connection refused"},
		{"asks for a pause", []answer{busy, ok}, 2, 20 * time.Second, ""},
		{"hangs", []answer{hang, ok}, 2, 11 * time.Second, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answers{list: tt.list}
				began := time.Now()
				s := NewSender("http://collector:4318/v1/traces", nil, "1", a)
				err := s.Traces(t.Context(), []byte(`{"resourceSpans":[]}`))
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
				if err != nil && strings.ContainsAny(err.Error(), "\x1b\n") {
					t.Errorf("the text can steer a terminal: %q", err)
				}
				if len(a.at) != tt.tries || time.Since(began) != tt.took {
					t.Errorf("%d tries in %v, want %d in %v", len(a.at), time.Since(began), tt.tries, tt.took)
				}
				for _, body := range a.body {
					if body != `{"resourceSpans":[]}` {
						t.Errorf("the body is %s", body)
					}
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		a := &answers{list: []answer{down}}
		if err := NewSender("http://collector/", nil, "1", a).Traces(ctx, nil); err == nil || len(a.at) != 2 {
			t.Errorf("%d tries, %v, although the caller has left", len(a.at), err)
		}
	})
}
