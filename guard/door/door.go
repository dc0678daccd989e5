package door

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

// Config holds the server's address and the asker's name.
type Config struct {
	// URL is the server's address, such as http://127.0.0.1:7420. Required.
	URL string
	// Credential is the guard's own, "" where the server asks for none.
	Credential string
	// Namespace is the tenant; "" means the credential's, else "default".
	Namespace interlock.Namespace
	// TLS is used with https; nil trusts what the system does.
	TLS *tls.Config
	// Timeout bounds one question; 0 means 10 s. A guard's caller waits for it.
	Timeout time.Duration
}

// Door is a server's HTTP/JSON door. Its methods may be called concurrently.
type Door struct {
	base string
	cfg  Config
	http *http.Client
}

const defaultTimeout = 10 * time.Second

// maxAnswer bounds what is read of one answer; a page of 1,000 keys is well below.
const maxAnswer = 16 << 20

// New makes a Door. It connects to nothing yet.
func New(cfg Config) (*Door, error) {
	base, err := url.Parse(strings.TrimRight(cfg.URL, "/"))
	if err != nil || base.Host == "" || base.Path != "" || base.User != nil || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%q is no address of a server: want one such as http://127.0.0.1:7420", cfg.URL)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	return &Door{base: base.String(), cfg: cfg, http: &http.Client{
		Timeout: cfg.Timeout,
		Transport: &http.Transport{
			// No proxy: one from the environment would get the credential.
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSClientConfig:     cfg.TLS,
			TLSHandshakeTimeout: 5 * time.Second,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 32,
			IdleConnTimeout:     time.Minute,
		},
		// The credential must not follow a redirect elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
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

// ask makes one call and reads its answer into v.
func (d *Door) ask(ctx context.Context, method, path string, query url.Values, body, v any) error {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(b)
	}
	address := d.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if d.cfg.Credential != "" {
		r.Header.Set("Authorization", "Bearer "+d.cfg.Credential)
	}
	if d.cfg.Namespace != "" {
		r.Header.Set("Interlock-Namespace", string(d.cfg.Namespace))
	}
	res, err := d.http.Do(r)
	if err != nil {
		return d.unreachable(ctx, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return d.unreachable(ctx, err)
	}
	if res.StatusCode != http.StatusOK {
		return d.refused(res, answer)
	}
	if err := json.Unmarshal(answer, v); err != nil {
		return fmt.Errorf("%w: what answers at %s is not understood (%v)", ErrUnreachable, d.base, err)
	}
	return nil
}

// said turns an answer that has not what was asked for into none: something else than Interlock
// may answer 200 and {} to everything.
func (d *Door) said(it bool) error {
	if it {
		return nil
	}
	return fmt.Errorf("%w: what answers at %s says something else", ErrUnreachable, d.base)
}

// unreachable leaves out the address that was asked: it may hold a lease's id.
func (d *Door) unreachable(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, d.base, err)
}

func (d *Door) refused(res *http.Response, answer []byte) error {
	var p struct {
		Code   interlock.Code
		Detail string
		Advice struct{ Message string }
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") || json.Unmarshal(answer, &p) != nil || p.Code == "" {
		return fmt.Errorf("%w: what answers at %s is none (status %d)", ErrUnreachable, d.base, res.StatusCode)
	}
	return &Refusal{Status: res.StatusCode, Code: p.Code, Detail: p.Detail, Advice: p.Advice.Message, Document: answer}
}
