package cli

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
	"os"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/api"
)

// API is the HTTP API with errors as the commands show them: a refusal is an
// *interlock.Error, and any other error has an exit code and names the next step.
type API struct {
	target *Target
	Client *api.Client
}

// Request is a call of the HTTP API.
type Request = api.Request

// NewAPI returns the HTTP API of the target.
func NewAPI(t *Target) *API { return newAPI(t, nil) }

func newAPI(t *Target, wrap func(http.RoundTripper) http.RoundTripper) *API {
	return &API{target: t, Client: api.New(api.Config{
		Bases: t.Bases, Credential: t.Credential, Namespace: t.Tenant(), TLS: t.TLS, UserAgent: "interlock/" + Version(),
		Wrap: wrap,
	})}
}

// API returns the HTTP API of the server that the command talks to. It is one for all calls of the
// process, so that a server which was found to be the active one is asked first from then on.
func (a *App) API() *API {
	a.apiOnce.Do(func() { a.api = newAPI(&a.Server, a.Wrap) })
	return a.api
}

// Traceparent returns the header of W3C Trace Context that the variable TRACEPARENT asks for, nil for none.
func Traceparent() http.Header {
	if trace := os.Getenv("TRACEPARENT"); trace != "" {
		return http.Header{"Traceparent": {trace}}
	}
	return nil
}

// Do makes a call. answer is what came, also with an error that is the server's
// refusal: then it is the problem document, and the error an *interlock.Error.
func (c *API) Do(ctx context.Context, r Request) (status int, answer []byte, err error) {
	return c.show(c.Client.Do(ctx, r))
}

// Whole is do for a caller that needs the headers.
func (c *API) Whole(ctx context.Context, r Request) (*api.Answer, error) {
	a, err := c.Client.Do(ctx, r)
	if err != nil {
		_, _, err = c.show(a, err)
	}
	return a, err
}

// Insist is Do for a request with an id that may be sent again: see api.Client.Repeat. With
// inLine it is about a place in line.
func (c *API) Insist(ctx context.Context, r Request, inLine bool) (status int, answer []byte, err error) {
	return c.show(c.Client.Repeat(ctx, r, inLine, &client.Backoff{Least: 100 * time.Millisecond, Most: 12 * time.Second}))
}

func (c *API) show(a *api.Answer, err error) (int, []byte, error) {
	if a == nil {
		return 0, nil, c.Explain(err)
	}
	return a.Status, a.Body, c.Explain(err)
}

// BeatAfter is Target.BeatAfter for the API's servers.
func (c *API) BeatAfter(ttl time.Duration) time.Duration { return c.target.BeatAfter(ttl) }

// Explain makes of an error of api.Client one that the commands show.
func (c *API) Explain(err error) error {
	if refused, ok := errors.AsType[*api.Problem](err); ok {
		return problem(refused.Body)
	}
	if other, ok := errors.AsType[*api.Stranger](err); ok {
		if host := other.Server; bytes.Contains(other.Body, []byte("HTTP request to an HTTPS server")) {
			return ExitWith(ExitUnreachable, fmt.Errorf("the server at %s speaks TLS: use https://%s", host, host))
		}
		return ExitWith(
			ExitUnreachable,
			fmt.Errorf(
				"what answers at %s://%s is no Interlock server (%s): check --url or INTERLOCK_URL", c.target.Bases[0].Scheme,
				other.Server, Clean(other.Status),
			),
		)
	}
	failed, ok := errors.AsType[*api.Unanswered](err)
	if !ok {
		return err
	}
	host := failed.Server
	if why := failed.Dial(); why != nil {
		return c.target.unreachable(false, why)
	}
	if errors.Is(failed, context.Canceled) {
		return failed.Err
	}
	if text := c.target.handshake(host, failed.Err); text != nil {
		return text
	}
	switch {
	case failed.NotHTTP():
		return ExitWith(
			ExitUnreachable,
			fmt.Errorf(
				"what answers at %s does not speak HTTP: check --url or INTERLOCK_URL, which is not the gRPC address", host,
			),
		)
	case !failed.Sent():
		return c.target.unreachable(false, failed.Err)
	}
	return &interlock.Error{Code: interlock.CodeOutcomeUnknown, Message: fmt.Sprintf(
		"%s was asked, and no whole answer came (%v): it may or may not have happened", host, failed.Err,
	)}
}

// problem reads a problem document.
func problem(body []byte) error {
	var p api.ProblemDocument
	if err := json.Unmarshal(body, &p); err != nil {
		return fmt.Errorf("the refusal cannot be read (%w): is this client older than the server?", err)
	}
	if p.Detail == "" {
		p.Detail = p.Title
	}
	e := &interlock.Error{
		Code: p.Code, Message: p.Detail, Key: interlock.Key(p.Key), ConflictKind: p.ConflictKind,
		Nearest: p.Nearest, Capacity: capacityOf(p.Capacity), EndedBy: p.EndedBy,
		Advice: interlock.Advice{
			Action: p.Advice.Action, RetryAfter: Millis(p.Advice.RetryAfter), Message: p.Advice.Message,
		},
		At: interlock.At{Shard: p.At.Shard, Epoch: p.At.Epoch, Index: p.At.Index},
	}
	for i := range p.Holders {
		e.Holders = append(e.Holders, holderOf(&p.Holders[i]))
	}
	for i := range p.Cycle {
		e.Cycle = append(e.Cycle, cycleStepOf(&p.Cycle[i]))
	}
	if p.Line != nil {
		e.Line = &interlock.Line{Length: p.Line.Length, ETA: Millis(p.Line.ETA)}
	}
	return e
}

// Get reads a resource into v, and with -o json prints it instead.
func (a *App) Get(ctx context.Context, path string, query url.Values, v any, show func() error) error {
	return a.Call(ctx, Request{Method: http.MethodGet, Path: path, Query: query}, v, show)
}

// Call makes a call; show prints v, which holds the answer, unless -o json asks for
// the answer itself.
func (a *App) Call(ctx context.Context, r Request, v any, show func() error) error {
	do := a.API().Do
	if r.Again {
		do = func(ctx context.Context, r Request) (int, []byte, error) { return a.API().Insist(ctx, r, false) }
	}
	_, answer, err := do(ctx, r)
	if shown, err := a.RawAnswer(answer, err); shown {
		return err
	}
	if err != nil {
		return err
	}
	if err := Decode(answer, v); err != nil {
		return err
	}
	return show()
}

// RawAnswer prints the answer of a call that ended with err, if there is one and -o json asks for
// it. Then shown is set, and the command ends with the error that it returns.
func (a *App) RawAnswer(answer []byte, err error) (shown bool, _ error) {
	if !a.JSON() || answer == nil {
		return false, err
	}
	if printed := a.Raw(answer); err == nil {
		err = printed
	}
	return true, err
}

// Decode reads an answer into v.
func Decode(answer []byte, v any) error {
	if err := json.Unmarshal(answer, v); err != nil {
		return fmt.Errorf("the answer cannot be read (%w): is this client older than the server?", err)
	}
	return nil
}

// KeyPath is the path of a key.
func KeyPath(key string) string { return ResourcePath("keys", key) }

// ResourcePath returns the path of a key's resource in a collection: every segment escaped, '/'
// between them.
func ResourcePath(collection, key string) string {
	segments := strings.Split(key, "/")
	for i := range segments {
		segments[i] = url.PathEscape(segments[i])
	}
	return "/v1/" + collection + "/" + strings.Join(segments, "/")
}

// FreshID is an Idempotency-Key.
func FreshID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// RetryAfter is after how long the server advised to ask again.
func RetryAfter(err error) time.Duration {
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		return refusal.Advice.RetryAfter
	}
	return 0
}

// IsRefused reports whether err is a refusal with that code.
func IsRefused(err error, code interlock.Code) bool {
	refusal, ok := errors.AsType[*interlock.Error](err)
	return ok && refusal.Code == code
}
