package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/interlockdev/interlock/guard/apiclient"
	"github.com/interlockdev/interlock/guard/apiclient/apitest"
	"github.com/interlockdev/interlock/internal/test/busy"
)

// routes are those of most tests.
const routes = `{
  "routes": [
    {"methods": ["GET"], "path": "/accounts/{id:int}", "demand": "open"},
    {"methods": ["POST"], "path": "/accounts/{id:int}/fees", "key": "account:{id}", "demand": "lease"},
    {"methods": ["PUT"], "path": "/files/{name}/{path...}", "key": "repo:{name}/{path}", "demand": "lease"}
  ],
  "credential": {"scheme": "Bearer", "file": "token"},
  "max_body_bytes": 1000
}`

const secret = "upstream-secret-0123456789"

// rig is an Interlock server, an API, and the proxy between.
type rig struct {
	t         *testing.T
	interlock *httptest.Server
	api       *api
	proxy     *Proxy
	front     *httptest.Server
	log       *lines
	options   Options
}

func newRig(t *testing.T, config string) *rig {
	t.Helper()
	r := &rig{t: t, interlock: apitest.Serve(t), api: newAPI(t), log: &lines{}}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "token"), secret+"\n")
	write(t, filepath.Join(dir, "guard.json"), config)
	cfg, err := Load(filepath.Join(dir, "guard.json"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := apiclient.New(apiclient.Config{URLs: []string{r.interlock.URL}})
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := url.Parse(r.api.URL + "/v2")
	if err != nil {
		t.Fatal(err)
	}
	r.options = Options{Config: cfg, API: d, Upstream: upstream, Records: r.log, Failed: func(err error) { t.Error(err) }}
	r.start()
	return r
}

// start replaces the proxy; the one before continues its calls.
func (r *rig) start() {
	r.t.Helper()
	var err error
	if r.proxy, err = New(r.options); err != nil {
		r.t.Fatal(err)
	}
	r.front = httptest.NewUnstartedServer(nil)
	r.front.Config = r.proxy.Server()
	r.front.Start()
	r.t.Cleanup(r.front.Close)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// api is the guarded API. It remembers its requests.
type api struct {
	*httptest.Server
	mu     sync.Mutex
	seen   []seen
	answer func(w http.ResponseWriter, r *http.Request) // nil: 200 done
}

type seen struct {
	method, host, uri string
	header            http.Header
	body              string
}

func newAPI(t *testing.T) *api {
	a := &api{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		a.seen = append(a.seen, seen{r.Method, r.Host, r.RequestURI, r.Header.Clone(), string(body)})
		answer := a.answer
		a.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		_, _ = io.WriteString(w, "done")
	}))
	t.Cleanup(a.Close)
	return a
}

// calls returns what was asked since the last time.
func (a *api) calls() []seen {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.seen
	a.seen = nil
	return list
}

func (a *api) answers(f func(w http.ResponseWriter, r *http.Request)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = f
}

// lines are the records.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// lease is one that an agent holds.
type lease struct{ id, fence string }

// acquire takes keys for an agent.
func (r *rig) acquire(agent string, keys ...string) lease {
	r.t.Helper()
	claims := []map[string]string{}
	for _, key := range keys {
		claims = append(claims, map[string]string{"key": key})
	}
	return r.ask("/v1/leases", map[string]any{"agent": agent, "claims": claims})
}

func (r *rig) release(l lease) { r.t.Helper(); r.ask("/v1/leases/"+l.id+"/release", map[string]any{}) }

func (r *rig) ask(path string, body any) lease {
	r.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := http.Post(r.interlock.URL+path, "application/json", bytes.NewReader(b))
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct{ Lease struct{ ID, Fence string } }
	text, _ := io.ReadAll(res.Body)
	if err := json.Unmarshal(text, &answer); err != nil || res.StatusCode != http.StatusOK {
		r.t.Fatalf("%s: %d %s", path, res.StatusCode, text)
	}
	return lease{answer.Lease.ID, answer.Lease.Fence}
}

// answer is a caller's answer from the proxy.
type answer struct {
	status int
	code   string // of a refusal
	header http.Header
	body   string
}

// call calls the proxy. headers are names and values in turns.
func (r *rig) call(method, path, body string, headers ...string) answer {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), busy.Patience())
	defer cancel()
	failed := func(err error) answer {
		r.t.Errorf("%s %s was not answered: %v", method, path, err)
		return answer{}
	}
	q, err := http.NewRequestWithContext(ctx, method, r.front.URL+path, strings.NewReader(body))
	if err != nil {
		return failed(err)
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Add(headers[i], headers[i+1])
	}
	res, err := r.front.Client().Do(q)
	if err != nil {
		return failed(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return failed(err)
	}
	if strings.Contains(string(text), secret) {
		r.t.Errorf("%s %s shows the credential: %s", method, path, text)
	}
	a := answer{status: res.StatusCode, header: res.Header, body: string(text)}
	if res.Header.Get(headerRefused) != "" {
		var p struct {
			Code   string
			Detail string
			Advice struct{ Message string }
		}
		if err := json.Unmarshal(text, &p); err != nil || p.Code != res.Header.Get(headerRefused) || p.Detail == "" ||
			p.Advice.Message == "" {
			r.t.Errorf("%s %s: no proper problem document: %v %s", method, path, err, text)
		}
		a.code = p.Code
	}
	return a
}

// wants checks an answer and what the API saw of it.
func (r *rig) wants(a answer, status int, code string, reached bool) {
	r.t.Helper()
	if a.status != status || a.code != code {
		r.t.Errorf("answered %d %s, want %d %s; the body is %s", a.status, a.code, status, code, a.body)
	}
	if calls := r.api.calls(); (len(calls) == 1) != reached || len(calls) > 1 {
		r.t.Errorf("the API saw %v", calls)
	}
}
