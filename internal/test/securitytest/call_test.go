package securitytest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// ask is a call over HTTP.
type ask struct {
	method, path string
	body         string
	header       []string // pairs of name and value; Host is one of them
	as           string   // the credential
}

// answer is the answer to a request.
type answer struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	closes bool // the connection
	raw    string
	body   map[string]any // of JSON
}

// request makes the call. A body without a type is JSON.
func (s *site) request(t *testing.T, a ask) *http.Request {
	t.Helper()
	var body io.Reader
	if a.body != "" {
		body = strings.NewReader(a.body)
	}
	r, err := http.NewRequestWithContext(t.Context(), a.method, "https://"+s.server.HTTP+a.path, body)
	if err != nil {
		t.Fatal(err)
	}
	if a.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if a.as != "" {
		r.Header.Set("Authorization", "Bearer "+a.as)
	}
	for i := 0; i+1 < len(a.header); i += 2 {
		switch name, value := a.header[i], a.header[i+1]; name {
		case "Host":
			r.Host = value
		case "Content-Type":
			r.Header.Set(name, value)
		default:
			r.Header.Add(name, value)
		}
	}
	return r
}

// send makes a call and reads the answer. Of one that never ends, the header.
func (s *site) send(t *testing.T, a ask) *answer {
	t.Helper()
	res, err := s.web.Do(s.request(t, a))
	if err != nil {
		t.Fatalf("%s %s: %v", a.method, a.path, err)
	}
	defer res.Body.Close()
	out := &answer{t: t, what: a.method + " " + a.path, status: res.StatusCode, header: res.Header}
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("%s %s: %v", a.method, a.path, err)
		}
		out.raw = string(b)
		if kind == "application/json" || kind == "application/problem+json" {
			_ = json.Unmarshal(b, &out.body) // a document may be anything
		}
	}
	s.heard(out)
	return out
}

// heard remembers an answer.
func (s *site) heard(a *answer) { fmt.Fprintf(s.said, "%v\n%s\n", a.header, a.raw) }

// raw sends bytes over a connection of their own, and reads one answer; nil when the
// server closed without any.
func (s *site) raw(t *testing.T, text string) *answer {
	t.Helper()
	c := s.connect(t)
	defer c.Close()
	go func() { _, _ = io.WriteString(c, text) }()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	first, _, _ := strings.Cut(text, "\r\n")
	out := &answer{
		t: t, what: first[:min(len(first), 100)], status: res.StatusCode, header: res.Header, closes: res.Close,
		raw: string(b),
	}
	_ = json.Unmarshal(b, &out.body)
	s.heard(out)
	return out
}

// agent calls as a tenant's agent, operator as its operator.
func (s *site) agent(t *testing.T, tenant, method, path, body string, header ...string) *answer {
	t.Helper()
	return s.send(t, ask{method: method, path: path, body: body, header: header, as: s.secrets[tenant]})
}

func (s *site) operator(t *testing.T, tenant, method, path, body string, header ...string) *answer {
	t.Helper()
	return s.send(t, ask{method: method, path: path, body: body, header: header, as: s.operators[tenant]})
}

// want checks the status, and the code if one is given.
func (a *answer) want(status int, code ...string) *answer {
	a.t.Helper()
	if a.status != status || len(code) > 0 && a.str("code") != code[0] {
		a.t.Fatalf("%s: %d %s, want %d %v", a.what, a.status, a.raw, status, code)
	}
	return a
}

// is reports whether the status is one, with the code.
func (a *answer) is(status int, code string) bool {
	return a != nil && a.status == status && a.str("code") == code
}

// str finds a text by its path, such as "lease.id" or "keys.0.key".
func (a *answer) str(path string) string {
	var v any = a.body
	for step := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(x) {
				return ""
			}
			v = x[i]
		}
	}
	text, _ := v.(string)
	return text
}

// must is str of a text that has to be there.
func (a *answer) must(path string) string {
	a.t.Helper()
	text := a.str(path)
	if text == "" {
		a.t.Fatalf("%s: no %s in %d %s", a.what, path, a.status, a.raw)
	}
	return text
}
