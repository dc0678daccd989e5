package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

// api is a small client of the HTTP/JSON door. It decodes the answers that the commands show, and
// returns each as it came besides, for -o json.
type api struct {
	target *target
	http   *http.Client
}

// callTimeout bounds a call beyond what it asked to wait for.
const callTimeout = 15 * time.Second

// maxAnswer bounds what is read of one answer. A listing of 1,000 keys is well
// below it.
const maxAnswer = 64 << 20

func newAPI(t *target) *api {
	transport := &http.Transport{
		// No proxy: a lock service is addressed directly, and a proxy from the
		// environment would get the credential.
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSClientConfig:     t.tls,
		TLSHandshakeTimeout: 5 * time.Second,
		ForceAttemptHTTP2:   true,
		IdleConnTimeout:     time.Minute,
	}
	return &api{target: t, http: &http.Client{
		Transport: transport,
		// The credential must not follow a redirect elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (a *app) api() *api { return newAPI(&a.server) }

// request is one call.
type request struct {
	method string
	path   string // escaped
	query  url.Values
	body   any
	id     string        // Idempotency-Key
	again  bool          // it may be repeated, see insist
	wait   time.Duration // how long the server may take on purpose
	header http.Header
}

// do makes a call. answer is what came, also with an error that is the server's
// refusal: then it is the problem document, and the error an *interlock.Error.
func (c *api) do(ctx context.Context, r request) (status int, answer []byte, err error) {
	res, answer, err := c.whole(ctx, r)
	if res != nil {
		status = res.StatusCode
	}
	return status, answer, err
}

// whole is do for callers that need the headers: res has a body that was read, and is nil if no
// whole answer came.
func (c *api) whole(ctx context.Context, r request) (res *http.Response, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.wait+callTimeout)
	defer cancel()
	res, err = c.send(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, nil, c.broken(r, err)
	}
	if res.StatusCode >= 300 {
		return res, answer, problem(c.target.base, res, answer)
	}
	return res, answer, nil
}

// send begins a call. The caller reads and closes the body.
func (c *api) send(ctx context.Context, r request) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	address := c.target.base.String() + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, err
	}
	if r.header != nil {
		req.Header = r.header.Clone()
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.id != "" {
		req.Header.Set("Idempotency-Key", r.id)
	}
	if c.target.Credential != "" {
		req.Header.Set("Authorization", "Bearer "+c.target.Credential)
	}
	if c.target.Namespace != "" {
		req.Header.Set("Interlock-Namespace", c.target.Namespace)
	}
	req.Header.Set("User-Agent", "interlock/"+version())
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.broken(r, err)
	}
	return res, nil
}

// broken is a call to which no whole answer came.
func (c *api) broken(r request, err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return c.target.unreachable(c.target.base.Host, op.Err)
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	if failed := c.target.handshake(c.target.base.Host, err); failed != nil {
		return failed
	}
	if text := err.Error(); strings.Contains(text, "malformed HTTP") || strings.Contains(text, "readLoopPeekFailLocked") {
		return exitWith(exitUnreachable, fmt.Errorf("what answers at %s does not speak HTTP: check --url or INTERLOCK_URL, which is not the gRPC address", c.target.base.Host))
	}
	if r.method == http.MethodGet {
		return c.target.unreachable(c.target.base.Host, err)
	}
	return &interlock.Error{Code: interlock.CodeOutcomeUnknown, Message: fmt.Sprintf(
		"%s was asked, and no whole answer came (%v): it may or may not have happened", c.target.base.Host, err,
	)}
}

// problem reads a problem document.
func problem(base *url.URL, res *http.Response, body []byte) error {
	var p struct {
		Title        string
		Code         interlock.Code
		Detail       string
		Key          interlock.Key
		ConflictKind interlock.ConflictKind `json:"conflict_kind"`
		Holders      []holder
		Queue        *struct {
			Length int
			ETA    int64 `json:"eta_ms"`
		}
		Cycle    []cycleStep
		Nearest  []string
		Capacity *capacity
		EndedBy  string `json:"ended_by"`
		Advice   advice
		At       at
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") || json.Unmarshal(body, &p) != nil || p.Code == "" {
		if bytes.Contains(body, []byte("HTTP request to an HTTPS server")) {
			return exitWith(exitUnreachable, fmt.Errorf("the server at %s speaks TLS: use https://%s", base.Host, base.Host))
		}
		return exitWith(exitUnreachable, fmt.Errorf("what answers at %s is no Interlock server (%s): check --url or INTERLOCK_URL", base, clean(res.Status)))
	}
	if p.Detail == "" {
		p.Detail = p.Title
	}
	e := &interlock.Error{
		Code: p.Code, Message: p.Detail, Key: p.Key, ConflictKind: p.ConflictKind,
		Nearest: p.Nearest, Capacity: p.Capacity.word(), EndedBy: p.EndedBy, Advice: p.Advice.word(), At: p.At.word(),
	}
	for i := range p.Holders {
		e.Holders = append(e.Holders, p.Holders[i].word())
	}
	for i := range p.Cycle {
		e.Cycle = append(e.Cycle, p.Cycle[i].word())
	}
	if p.Queue != nil {
		e.Queue = &interlock.Queue{Length: p.Queue.Length, ETA: ms(p.Queue.ETA)}
	}
	return e
}

// get reads a resource into v, and with -o json prints it instead.
func (a *app) get(ctx context.Context, path string, query url.Values, v any, show func() error) error {
	return a.call(ctx, request{method: http.MethodGet, path: path, query: query}, v, show)
}

// call makes a call; show prints v, which holds the answer, unless -o json asks for
// the answer itself.
func (a *app) call(ctx context.Context, r request, v any, show func() error) error {
	do := a.api().do
	if r.again {
		do = func(ctx context.Context, r request) (int, []byte, error) { return a.api().insist(ctx, r, false) }
	}
	_, answer, err := do(ctx, r)
	if a.json() && answer != nil {
		if printed := a.raw(answer); printed != nil && err == nil {
			err = printed
		}
		return err
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, v); err != nil {
		return fmt.Errorf("the answer cannot be read (%w): is this client older than the server?", err)
	}
	return show()
}

// keyPath is the path of a key.
func keyPath(key string) string { return resourcePath("keys", key) }

// resourcePath is the path of what a collection has of a key: every segment escaped,
// '/' between them.
func resourcePath(collection, key string) string {
	segments := strings.Split(key, "/")
	for i := range segments {
		segments[i] = url.PathEscape(segments[i])
	}
	return "/v1/" + collection + "/" + strings.Join(segments, "/")
}

// freshID is an Idempotency-Key.
func freshID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}
