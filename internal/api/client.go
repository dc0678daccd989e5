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
	"github.com/interlockdev/interlock/internal/endpoint"
)

// Config is where the servers are and with which rights they are called.
type Config struct {
	Bases      []*url.URL // the servers of one cluster, the first to be tried first; see ParseBases
	Credential string     // "" where the server asks for none
	Namespace  interlock.Namespace
	TLS        *tls.Config // used with https; nil trusts the system's certificates
	UserAgent  string

	// Timeout bounds a call at all servers together, beyond Request.Wait; 0: 15 s.
	Timeout time.Duration
	// Transport replaces the connections that New sets up, and Wrap stands in front of either; nil: nothing.
	Transport http.RoundTripper
	Wrap      func(http.RoundTripper) http.RoundTripper
}

const dialTimeout = 5 * time.Second

// maxAnswer bounds the bytes read of one answer. A listing of 1,000 keys is well below it.
const maxAnswer = 64 << 20

// Client calls a server. Its methods may be called concurrently.
type Client struct {
	cfg     Config
	http    http.Client
	servers *endpoint.List
}

// New returns a client. It connects to nothing yet.
func New(cfg Config) *Client {
	if cfg.Timeout == 0 {
		cfg.Timeout = 15 * time.Second
	}
	addrs := make([]string, len(cfg.Bases))
	for i, base := range cfg.Bases {
		addrs[i] = HostPort(base)
	}
	servers := endpoint.New(addrs)
	if cfg.Transport == nil {
		cfg.Transport = &http.Transport{
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				ctx, cancel := context.WithTimeout(ctx, dialTimeout)
				defer cancel()
				return servers.DialContext(ctx, network, addr)
			},
			TLSClientConfig:     cfg.TLS,
			TLSHandshakeTimeout: 5 * time.Second,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 64,
			IdleConnTimeout:     time.Minute,
		}
	}
	if cfg.Wrap != nil {
		cfg.Transport = cfg.Wrap(cfg.Transport)
	}
	return &Client{cfg: cfg, servers: servers, http: http.Client{
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

// ParseBases reads the addresses of a cluster's servers. All have the same scheme, so that a
// credential which is to travel encrypted never travels otherwise.
func ParseBases(texts []string) (bases []*url.URL, err error) {
	for _, text := range texts {
		base, err := ParseBase(text)
		if err != nil {
			return nil, err
		}
		if len(bases) > 0 && bases[0].Scheme != base.Scheme {
			return nil, fmt.Errorf(
				"%s and %s differ in their scheme: want http for all servers, or https for all", bases[0], base,
			)
		}
		bases = append(bases, base)
	}
	if len(bases) == 0 {
		return nil, errors.New("no address of a server: want one such as http://127.0.0.1:7420")
	}
	return bases, nil
}

// HostPort returns the address that a URL's connections go to.
func HostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
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

// Do makes a call, at another server where the current one cannot carry it out. With a *Problem the
// answer is its document; with other errors there is none.
func (c *Client) Do(ctx context.Context, r Request) (answer *Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Wait+c.cfg.Timeout)
	defer cancel()
	err = c.visit(ctx, r, func(ctx context.Context, base *url.URL) error {
		if r.movable() && c.several() {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, r.Wait+c.share(ctx, r))
			defer cancel()
		}
		answer = nil
		res, err := c.send(ctx, base, r)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		if err != nil {
			return &Unanswered{Method: r.Method, Server: base.Host, Err: err}
		}
		answer = &Answer{res.StatusCode, res.Header, body}
		if res.StatusCode < 300 {
			return nil
		}
		return problemOf(answer, base.Host, res.Status)
	})
	if isUnanswered(err) {
		answer = nil
	}
	return answer, err
}

// Send begins a call. The caller reads and closes the body, of any status but that of a server that
// is not the active one: that is a *Problem. Other errors are *Unanswered.
func (c *Client) Send(ctx context.Context, r Request) (res *http.Response, err error) {
	err = c.visit(ctx, r, func(ctx context.Context, base *url.URL) error {
		ctx, cancel := context.WithCancel(ctx)
		if c.several() {
			defer time.AfterFunc(c.cfg.Timeout, cancel).Stop()
		}
		var err error
		if res, err = c.send(ctx, base, r); err != nil {
			cancel()
			return err
		}
		res.Body = &sentBody{res.Body, cancel}
		if res.StatusCode != http.StatusServiceUnavailable {
			return nil
		}
		body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		res.Body.Close()
		if err != nil {
			return &Unanswered{Method: r.Method, Server: base.Host, Err: err}
		}
		res.Body = io.NopCloser(bytes.NewReader(body))
		if err := problemOf(&Answer{res.StatusCode, res.Header, body}, base.Host, res.Status); isElsewhere(err) {
			return err
		}
		return nil
	})
	return res, err
}

// sentBody is the body of an answer; its end frees the call.
type sentBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *sentBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// send makes a call at one server. The error is *Unanswered.
func (c *Client) send(ctx context.Context, base *url.URL, r Request) (*http.Response, error) {
	var body io.Reader
	if r.Body != nil {
		text, err := json.Marshal(r.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	address := base.String() + r.Path
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
		c.prefer(base, res.Header.Get("Interlock-Owner"))
		return res, nil
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return nil, &Unanswered{Method: r.Method, Server: base.Host, Err: err}
}
