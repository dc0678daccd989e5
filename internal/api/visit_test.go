package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/internal/api"
)

// cluster is a transport to servers with one letter as their host. Each answers its n-th request by
// its n-th word, and all further ones by its last.
type cluster struct {
	words map[string][]string
	sent  []string        // the hosts in the order of the requests
	ids   map[string]bool // of the requests
}

// clusterOf reads "a: away ok, b: standby".
func clusterOf(text string) (c *cluster, bases []*url.URL) {
	c = &cluster{words: map[string][]string{}, ids: map[string]bool{}}
	for server := range strings.SplitSeq(text, ",") {
		name, words, _ := strings.Cut(strings.TrimSpace(server), ":")
		c.words[name] = strings.Fields(words)
		bases = append(bases, &url.URL{Scheme: "http", Host: name})
	}
	return c, bases
}

func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	host := r.URL.Host
	c.sent = append(c.sent, host)
	c.ids[r.Header.Get("Idempotency-Key")] = true
	word := c.words[host][0]
	if rest := c.words[host][1:]; len(rest) > 0 {
		c.words[host] = rest
	}
	problem := func(code, more string) (*http.Response, error) {
		return &http.Response{
			StatusCode: 503, Status: "503 Service Unavailable",
			Header: http.Header{"Content-Type": {"application/problem+json"}},
			Body:   io.NopCloser(strings.NewReader(`{"title":"T","code":"` + code + `"` + more + `}`)),
		}, nil
	}
	switch active, named := strings.CutPrefix(word, "names-"); {
	case named:
		return problem("not_owner", `,"active":{"http":"http://`+active+`:80","grpc":""}`)
	case word == "standby":
		return problem("not_owner", "")
	case word == "stops":
		return problem("shutting_down", "")
	case word == "busy":
		return problem("overloaded", "")
	case word == "away":
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	case word == "broken":
		return nil, io.ErrUnexpectedEOF
	case word == "silent":
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	header := http.Header{}
	if owner, forwarded := strings.CutPrefix(word, "owner-"); forwarded {
		header.Set("Interlock-Owner", "http://"+owner+":80")
	}
	return &http.Response{
		StatusCode: 200, Status: "200 OK", Header: header, Body: io.NopCloser(strings.NewReader(`{}`)),
	}, nil
}

func TestFailOver(t *testing.T) {
	for _, tt := range []struct {
		name    string
		servers string
		request api.Request
		want    string // how it ended
		sent    string // the servers asked, in order
		within  time.Duration
	}{
		{"the first is dead", "a: away, b: ok", api.Request{Method: "POST"}, "ok", "a b", 0},
		{"the first stands by", "a: standby, b: ok", api.Request{Method: "POST"}, "ok", "a b", 0},
		{"the first shuts down", "a: stops, b: ok", api.Request{Method: "POST"}, "ok", "a b", 0},
		{"the first is busy", "a: busy, b: ok", api.Request{Method: "POST"}, "overloaded", "a", 0},
		{"a standby names the third", "a: names-c, b: ok, c: ok", api.Request{Method: "POST"}, "ok", "a c", 0},
		{"a standby names a stranger", "a: names-evil, b: ok", api.Request{Method: "POST"}, "ok", "a b", 0},
		{
			"standbys name a dead one", "a: away, b: names-a, c: ok",
			api.Request{Method: "POST"},
			"ok", "a b c", 0,
		},
		{"a standby names itself", "a: names-a, b: ok", api.Request{Method: "POST"}, "ok", "a b", 0},
		{"it broke, and must not be repeated", "a: broken, b: ok", api.Request{Method: "POST"}, "unknown", "a", 0},
		{"it broke, and has an id", "a: broken, b: ok", api.Request{Method: "POST", ID: "1"}, "ok", "a b", 0},
		{"it broke, and may be repeated", "a: broken, b: ok", api.Request{Method: "POST", Again: true}, "ok", "a b", 0},
		{"a look broke", "a: broken, b: ok", api.Request{Method: "GET"}, "ok", "a b", 0},
		{"silent", "a: silent, b: ok", api.Request{Method: "GET"}, "ok", "a b", 4 * time.Second},
		{"silent, as long as it may", "a: silent, b: ok", api.Request{Method: "POST"}, "unknown", "a", 15 * time.Second},
		{
			"both are dead, and one returns", "a: away away ok, b: away",
			api.Request{Method: "POST"},
			"ok", "a b a b a", time.Second,
		},
		{
			"the standby takes over", "a: away, b: names-a names-a ok",
			api.Request{Method: "POST"},
			"ok", "a b b b", time.Second,
		},
		{"the only one is dead", "a: away", api.Request{Method: "POST"}, "unreachable", "a", 0},
		{"the only one stands by", "a: names-b", api.Request{Method: "POST"}, "not_owner", "a", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers, bases := clusterOf(tt.servers)
				c := api.New(api.Config{Bases: bases, Transport: servers})
				tt.request.Path = "/"
				began := time.Now()
				_, err := c.Do(t.Context(), tt.request)
				if got, sent := outcome(err), strings.Join(servers.sent, " "); got != tt.want || sent != tt.sent {
					t.Errorf("it ended with %s after %s, want %s after %s", got, sent, tt.want, tt.sent)
				}
				if took := time.Since(began); took > tt.within {
					t.Errorf("it took %v, want at most %v", took, tt.within)
				}
			})
		})
	}
}

// The server that answered is asked first the next time.
func TestStickyServer(t *testing.T) {
	servers, bases := clusterOf("a: standby, b: ok")
	c := api.New(api.Config{Bases: bases, Transport: servers})
	for range 3 {
		if _, err := c.Do(t.Context(), api.Request{Method: "GET", Path: "/"}); err != nil {
			t.Fatal(err)
		}
	}
	if sent := strings.Join(servers.sent, " "); sent != "a b b b" {
		t.Errorf("it asked %s", sent)
	}
}

// When no server answers, the call ends with its time, and what was sent once stays unknown.
func TestNoServerAnswers(t *testing.T) {
	for servers, want := range map[string]string{
		"a: away, b: away": "unreachable", "a: broken away, b: away": "unknown", "a: silent, b: silent": "unknown",
		"a: away, b: standby": "not_owner",
	} {
		t.Run(servers, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster, bases := clusterOf(servers)
				c := api.New(api.Config{Bases: bases, Transport: cluster, Timeout: 8 * time.Second})
				began := time.Now()
				_, err := c.Do(t.Context(), api.Request{Method: "POST", Path: "/", ID: "1"})
				if got := outcome(err); got != want {
					t.Errorf("it ended with %s, want %s", got, want)
				}
				if took := time.Since(began); took > 8*time.Second || took < 6*time.Second {
					t.Errorf("it took %v of 8s", took)
				}
				if len(cluster.ids) != 1 {
					t.Errorf("it was sent under %d ids", len(cluster.ids))
				}
			})
		})
	}
}

// A heartbeat with the ttl as its deadline reaches the second server while the lease still lives.
func TestHeartbeatFitsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, bases := clusterOf("a: silent, b: ok")
		c := api.New(api.Config{Bases: bases, Transport: servers})
		const ttl = 10 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), ttl)
		defer cancel()
		began := time.Now()
		_, err := c.Do(ctx, api.Request{Method: "POST", Path: "/", Again: true})
		if took := time.Since(began); err != nil || took > ttl/4 {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// A caller that cancels shows nothing about the server.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers, bases := clusterOf("a: silent ok, b: ok")
		c := api.New(api.Config{Bases: bases, Transport: servers})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := c.Do(ctx, api.Request{Method: "GET", Path: "/"}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := c.Do(t.Context(), api.Request{Method: "GET", Path: "/"}); err != nil {
			t.Fatal(err)
		}
		if sent := strings.Join(servers.sent, " "); sent != "a a" {
			t.Errorf("it asked %s", sent)
		}
	})
}

// Send goes on to the active server, and lets its caller read every other answer.
func TestSendFailsOver(t *testing.T) {
	servers, bases := clusterOf("a: standby, b: busy")
	c := api.New(api.Config{Bases: bases, Transport: servers})
	res, err := c.Send(t.Context(), api.Request{Method: "GET", Path: "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(body), "overloaded") {
		t.Errorf("%q, %v", body, err)
	}
	if sent := strings.Join(servers.sent, " "); sent != "a b" {
		t.Errorf("it asked %s", sent)
	}
}

// A client asks the owner of the shard next, after another server has forwarded a call to it; but only if it is on
// the list.
func TestOwnerIsAskedNext(t *testing.T) {
	c, bases := clusterOf("a: owner-c owner-evil ok, b: ok, c: owner-evil ok")
	client := api.New(api.Config{Bases: bases, Transport: c})
	for range 3 {
		if _, err := client.Do(t.Context(), api.Request{Method: "GET", Path: "/"}); err != nil {
			t.Fatal(err)
		}
	}
	if sent := strings.Join(c.sent, " "); sent != "a c c" {
		t.Errorf("asked %s", sent)
	}
}

// A standby cannot send the credential to an address of its choice.
func TestCredentialStaysOnTheList(t *testing.T) {
	var leaked []string
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leaked = append(leaked, r.Header.Get("Authorization"))
	}))
	defer stranger.Close()
	standby := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(503)
		fmt.Fprintf(w, `{"code":"not_owner","active":{"http":%q,"grpc":""}}`, stranger.URL)
	}))
	defer standby.Close()
	base, err := api.ParseBase(standby.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := api.New(api.Config{Bases: []*url.URL{base}, Credential: "ilk_secret"})
	_, err = c.Do(t.Context(), api.Request{Method: "GET", Path: "/"})
	p, ok := errors.AsType[*api.Problem](err)
	if !ok || p.Active == nil || p.Active.HTTP != stranger.URL {
		t.Errorf("the caller does not learn of the active server: %v", err)
	}
	if len(leaked) > 0 {
		t.Error("the credential went to an address that a server named")
	}
}

func TestParseBases(t *testing.T) {
	for _, tt := range []struct{ texts, wrong string }{
		{"http://a:1 http://b:1/", ""},
		{"https://a https://b:7420", ""},
		{"http://a:1 https://b:1", "differ"},
		{"http://a:1 b:1", "not the address of a server"},
		{"", "no address"},
	} {
		bases, err := api.ParseBases(strings.Fields(tt.texts))
		switch {
		case tt.wrong == "" && (err != nil || len(bases) != len(strings.Fields(tt.texts))):
			t.Errorf("%s: %v", tt.texts, err)
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%s: got %v, want %s", tt.texts, err, tt.wrong)
		}
	}
}
