package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/api"
)

// httpAPI is the HTTP API with errors as the commands show them: a refusal is an
// *interlock.Error, and any other error has an exit code and names the next step.
type httpAPI struct {
	target *target
	client *api.Client
}

type request = api.Request

func newAPI(t *target) *httpAPI {
	return &httpAPI{target: t, client: api.New(api.Config{
		Base: t.base, Credential: t.Credential, Namespace: t.namespace(), TLS: t.tls, UserAgent: "interlock/" + version(),
	})}
}

func (a *app) api() *httpAPI { return newAPI(&a.server) }

// do makes a call. answer is what came, also with an error that is the server's
// refusal: then it is the problem document, and the error an *interlock.Error.
func (c *httpAPI) do(ctx context.Context, r request) (status int, answer []byte, err error) {
	return c.show(c.client.Do(ctx, r))
}

// whole is do for a caller that needs the headers.
func (c *httpAPI) whole(ctx context.Context, r request) (*api.Answer, error) {
	a, err := c.client.Do(ctx, r)
	if err != nil {
		_, _, err = c.show(a, err)
	}
	return a, err
}

// insist is do for a request with an id that may be sent again: see api.Client.Repeat. With
// waiterRow it is about a place in line.
func (c *httpAPI) insist(ctx context.Context, r request, inLine bool) (status int, answer []byte, err error) {
	return c.show(c.client.Repeat(ctx, r, inLine, &client.Backoff{Least: 100 * time.Millisecond, Most: 12 * time.Second}))
}

func (c *httpAPI) show(a *api.Answer, err error) (int, []byte, error) {
	if a == nil {
		return 0, nil, c.explain(nil, err)
	}
	return a.Status, a.Body, c.explain(a.Body, err)
}

// explain makes of an error of api.Client one that the commands show. answer is what came.
func (c *httpAPI) explain(answer []byte, err error) error {
	host := c.target.base.Host
	if _, ok := errors.AsType[*api.Problem](err); ok {
		return problem(answer)
	}
	if other, ok := errors.AsType[*api.Stranger](err); ok {
		if bytes.Contains(other.Body, []byte("HTTP request to an HTTPS server")) {
			return exitWith(exitUnreachable, fmt.Errorf("the server at %s speaks TLS: use https://%s", host, host))
		}
		return exitWith(
			exitUnreachable,
			fmt.Errorf(
				"what answers at %s is no Interlock server (%s): check --url or INTERLOCK_URL", c.target.base, clean(other.Status),
			),
		)
	}
	failed, ok := errors.AsType[*api.Unanswered](err)
	if !ok {
		return err
	}
	if why := failed.Dial(); why != nil {
		return c.target.unreachable(host, why)
	}
	if errors.Is(failed, context.Canceled) {
		return failed.Err
	}
	if text := c.target.handshake(host, failed.Err); text != nil {
		return text
	}
	switch {
	case failed.NotHTTP():
		return exitWith(
			exitUnreachable,
			fmt.Errorf(
				"what answers at %s does not speak HTTP: check --url or INTERLOCK_URL, which is not the gRPC address", host,
			),
		)
	case !failed.Sent():
		return c.target.unreachable(host, failed.Err)
	}
	return &interlock.Error{Code: interlock.CodeOutcomeUnknown, Message: fmt.Sprintf(
		"%s was asked, and no whole answer came (%v): it may or may not have happened", host, failed.Err,
	)}
}

// problem reads a problem document.
func problem(body []byte) error {
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
	if err := json.Unmarshal(body, &p); err != nil {
		return fmt.Errorf("the refusal cannot be read (%w): is this client older than the server?", err)
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
	return a.call(ctx, request{Method: http.MethodGet, Path: path, Query: query}, v, show)
}

// call makes a call; show prints v, which holds the answer, unless -o json asks for
// the answer itself.
func (a *app) call(ctx context.Context, r request, v any, show func() error) error {
	do := a.api().do
	if r.Again {
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

// resourcePath returns the path of a key's resource in a collection: every segment escaped, '/'
// between them.
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

// estimate is after how long the server advised to ask again.
func estimate(err error) time.Duration {
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		return refusal.Advice.RetryAfter
	}
	return 0
}
