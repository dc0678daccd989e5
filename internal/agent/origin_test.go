package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
)

func TestLocalCarriesTheOrigin(t *testing.T) {
	var got *http.Request
	hub := NewHub(Config{API: api.New(api.Config{
		Bases: []*url.URL{{Scheme: "http", Host: "127.0.0.1"}},
		Transport: Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r
			w.Header().Set("X-Is", "there")
			_, _ = io.WriteString(w, "{}")
		})),
	})})
	defer hub.Close()
	r := httptest.NewRequest("POST", "http://evil.example/mcp", nil)
	r.Header.Set("Authorization", "Bearer one")
	r.Header.Set("Interlock-Namespace", "team")
	r.Header.Set("Origin", "http://evil.example")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	r.Header.Set("Cookie", "no")
	c := hub.Caller(Identity{Origin: OriginOf(r), Key: "k"})
	answer, err := c.Do(t.Context(), api.Request{Method: "GET", Path: "/v1/keys/a%2Fb", Query: url.Values{"resource": {"x"}}})
	if err != nil || string(answer.Body) != "{}" || answer.Header.Get("X-Is") != "there" {
		t.Fatalf("answer %+v, %v", answer, err)
	}
	if got.Host != "evil.example" || got.RemoteAddr != r.RemoteAddr || got.RequestURI != "/v1/keys/a%2Fb?resource=x" ||
		got.URL.EscapedPath() != "/v1/keys/a%2Fb" || got.Header.Get("Authorization") != "Bearer one" ||
		got.Header.Get("Interlock-Namespace") != "team" || got.Header.Get("Origin") != "http://evil.example" ||
		got.Header.Get("Sec-Fetch-Site") != "cross-site" || got.Header.Get("Cookie") != "" {
		t.Errorf("the handler saw %+v", got)
	}
}

// Each request of an agent has an Origin of its own, so neither a refused one nor an admitted one decides about others.
func TestForeignHostIsRefused(t *testing.T) {
	inBubble(t, func(r *rig) {
		for i, host := range []string{"evil.example", "localhost", "evil.example", "localhost"} {
			q := httptest.NewRequest("POST", "http://"+host+"/mcp", nil)
			reply, err := r.hub.Caller(Identity{Origin: OriginOf(q), Key: "k"}).Acquire(
				r.Context(), api.AcquireRequest{Claims: claims("a")}, "",
			)
			if err != nil || (host != "localhost") != (reply.Refused != nil && reply.Refused.Code == interlock.CodeForeignHost) {
				r.Errorf("request %d, by %s: %+v, %v", i, host, reply, err)
			}
		}
	})
}

func TestLocalStreamsAndCancels(t *testing.T) {
	handled := make(chan error, 1)
	transport := Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/silent" {
			<-r.Context().Done()
			handled <- r.Context().Err()
			return
		}
		_, _ = io.WriteString(w, "one")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		_, err := io.WriteString(w, "two")
		handled <- err
	}))
	ctx, cancel := context.WithCancel(t.Context())
	q, _ := http.NewRequestWithContext(ctx, "GET", "http://local/stream", nil)
	res, err := transport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	part := make([]byte, 3)
	if _, err := io.ReadFull(res.Body, part); err != nil || string(part) != "one" {
		t.Errorf("%q, %v", part, err)
	}
	cancel()
	_ = res.Body.Close()
	if err := <-handled; err == nil {
		t.Error("a closed body takes more")
	}

	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	q, _ = http.NewRequestWithContext(ctx, "GET", "http://local/silent", nil)
	if _, err := transport.RoundTrip(q); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	<-handled
}

func TestLocalHandlerThatPanics(t *testing.T) {
	transport := Local(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode("half")
		panic(http.ErrAbortHandler)
	}))
	q, _ := http.NewRequestWithContext(t.Context(), "GET", "http://local/", nil)
	res, err := transport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); !errors.Is(err, errAborted) {
		t.Errorf("error %v", err)
	}
}

// Different credentials, namespaces and keys are different callers.
func TestCallersAreApart(t *testing.T) {
	hub := NewHub(Config{})
	defer hub.Close()
	of := func(credential, namespace, key string) *Party {
		r := httptest.NewRequest("POST", "http://localhost/", nil)
		r.Header.Set("Authorization", credential)
		r.Header.Set("Interlock-Namespace", namespace)
		return hub.Caller(Identity{Origin: OriginOf(r), Key: key}).Party
	}
	seen := map[*Party]bool{}
	for _, c := range []*Party{of("a", "", "k"), of("b", "", "k"), of("a", "n", "k"), of("a", "", "l"), of("", "a", "k")} {
		seen[c] = true
	}
	if !seen[of("a", "", "k")] || len(seen) != 5 { // asking again returns the same one
		t.Errorf("%d callers", len(seen))
	}
}
