package api

import (
	"bytes"
	"context"
	"crypto/tls"
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

// Config is where the server is and with which rights it is called.
type Config struct {
	Base       *url.URL // see ParseBase
	Credential string   // "" where the server asks for none
	Namespace  interlock.Namespace
	TLS        *tls.Config // used with https; nil trusts the system's certificates
	UserAgent  string

	// Timeout bounds a call beyond Request.Wait; 0: 15 s.
	Timeout time.Duration
	// Transport replaces the connections that New sets up.
	Transport http.RoundTripper
}

// maxAnswer bounds what is read of one answer. A listing of 1,000 keys is well below it.
const maxAnswer = 64 << 20

// Client calls a server. Its methods may be called concurrently.
type Client struct {
	cfg  Config
	http http.Client
}

// New returns a client. It connects to nothing yet.
func New(cfg Config) *Client {
	if cfg.Timeout == 0 {
		cfg.Timeout = 15 * time.Second
	}
	if cfg.Transport == nil {
		cfg.Transport = &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSClientConfig:     cfg.TLS,
			TLSHandshakeTimeout: 5 * time.Second,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 64,
			IdleConnTimeout:     time.Minute,
		}
	}
	return &Client{cfg: cfg, http: http.Client{
		Transport:     cfg.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ParseBase reads the address of a server, such as http://127.0.0.1:7420.
func ParseBase(text string) (*url.URL, error) {
	base, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || base.Host == "" || base.Path != "" || base.User != nil ||
		base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of a server: want one such as http://127.0.0.1:7420", text)
	}
	return base, nil
}

// Request is one call.
type Request struct {
	Method string
	Path   string // escaped
	Query  url.Values
	Body   any           // encoded as JSON; nil: none
	ID     string        // Idempotency-Key; "": none
	Again  bool          // it may be repeated: see Repeat
	Wait   time.Duration // how long the server may take on purpose
	Header http.Header
}

// Answer is a whole answer, read.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do makes a call. With a *Problem the answer is its document; with other errors there is
// none.
func (c *Client) Do(ctx context.Context, r Request) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Wait+c.cfg.Timeout)
	defer cancel()
	res, err := c.Send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, &Unanswered{Method: r.Method, Err: err}
	}
	answer := &Answer{res.StatusCode, res.Header, body}
	if res.StatusCode < 300 {
		return answer, nil
	}
	return answer, problemOf(answer, res.Status)
}

// Send begins a call. The caller reads and closes the body. The error is *Unanswered.
func (c *Client) Send(ctx context.Context, r Request) (*http.Response, error) {
	var body io.Reader
	if r.Body != nil {
		text, err := json.Marshal(r.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	address := c.cfg.Base.String() + r.Path
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, address, body)
	if err != nil {
		return nil, err
	}
	if r.Header != nil {
		req.Header = r.Header.Clone()
	}
	for name, value := range map[string]string{
		"Idempotency-Key": r.ID, "Interlock-Namespace": string(c.cfg.Namespace), "User-Agent": c.cfg.UserAgent,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.cfg.Credential != "" {
		req.Header.Set("Authorization", "Bearer "+c.cfg.Credential)
	}
	res, err := c.http.Do(req)
	if err == nil {
		return res, nil
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return nil, &Unanswered{Method: r.Method, Err: err}
}
