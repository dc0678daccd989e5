package apiclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
)

// Config holds the servers' addresses and the asker's name.
type Config struct {
	// URLs are the addresses of the servers of one cluster, such as http://127.0.0.1:7420, all with
	// the same scheme. At least one is required. The server that answered last is asked first; when
	// it does not answer, or is not the active one, the others are asked until Timeout is over. A
	// server's address of the active one is followed only if it is among them, so that no server can
	// send the credential elsewhere.
	URLs []string
	// Credential is the guard's own, "" if the server requires none.
	Credential string
	// Namespace is the tenant; "" means the credential's, else "default".
	Namespace interlock.Namespace
	// TLS is used with https; nil trusts the system's certificates.
	TLS *tls.Config
	// Timeout bounds one question at all servers together; 0 means 10 s. A guard's caller waits for
	// it. With several servers it should be longer than a fail-over takes, some 5 s.
	Timeout time.Duration
}

// Client is a server's HTTP API. Its methods may be called concurrently.
type Client struct {
	bases  string // for messages
	client *api.Client
}

const defaultTimeout = 10 * time.Second

// New makes a Client. It connects to nothing yet.
func New(cfg Config) (*Client, error) {
	bases, err := api.ParseBases(cfg.URLs)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, base := range bases {
		names = append(names, base.String())
	}
	return &Client{bases: strings.Join(names, ", "), client: api.New(api.Config{
		Bases: bases, Credential: cfg.Credential, Namespace: cfg.Namespace, TLS: cfg.TLS,
		Timeout: cmp.Or(cfg.Timeout, defaultTimeout),
	})}, nil
}

// ErrUnreachable means that no Interlock server answered, so nothing is known.
var ErrUnreachable = errors.New("no Interlock server answered")

// Refusal is the server's word that something is not so.
type Refusal struct {
	Status   int
	Code     interlock.Code
	Detail   string
	Advice   string
	Document json.RawMessage // the problem document (RFC 9457) as it came
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Detail }

// CodeOf returns the code of a refusal, or "" for any other error.
func CodeOf(err error) interlock.Code {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal.Code
	}
	return ""
}

const checkPath = "/v1/fences/check"

// call makes one call and reads its answer into v.
func (d *Client) call(ctx context.Context, method, path string, query url.Values, body, v any) error {
	answer, err := d.client.Do(ctx, api.Request{
		Method: method, Path: path, Query: query, Body: body, Again: path == checkPath, // it changes nothing
	})
	if err != nil {
		return d.failed(ctx, answer, err)
	}
	if answer.Status != http.StatusOK {
		return fmt.Errorf("%w: %s did not answer as one (status %d)", ErrUnreachable, d.bases, answer.Status)
	}
	if err := json.Unmarshal(answer.Body, v); err != nil {
		return fmt.Errorf("%w: the answer of %s is malformed (%v)", ErrUnreachable, d.bases, err)
	}
	return nil
}

// confirmed turns an answer that has not what was asked for into none: something else than Interlock
// may answer 200 and {} to everything.
func (d *Client) confirmed(it bool) error {
	if it {
		return nil
	}
	return fmt.Errorf("%w: %s did not answer as one", ErrUnreachable, d.bases)
}

// failed makes of an error of api.Client a Refusal, or ErrUnreachable.
func (d *Client) failed(ctx context.Context, answer *api.Answer, err error) error {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return &Refusal{Status: p.Status, Code: p.Code, Detail: p.Detail, Advice: p.Advice.Message, Document: answer.Body}
	}
	if _, ok := errors.AsType[*api.Stranger](err); ok {
		return fmt.Errorf("%w: %s did not answer as one (status %d)", ErrUnreachable, d.bases, answer.Status)
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, d.bases, err)
}
