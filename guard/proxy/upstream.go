package proxy

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

// newReverse makes the half that faces the API.
func (p *Proxy) newReverse() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		ModifyResponse: p.clean,
		ErrorHandler:   p.failed,
		FlushInterval:  -1, // streams go on at once
		// Its message is in the record, and its texts may quote headers.
		ErrorLog: log.New(io.Discard, "", 0),
		Transport: &http.Transport{
			// No proxy: one from the environment would get the credential.
			DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout:   10 * time.Second,
			ForceAttemptHTTP2:     true,
			DisableCompression:    true, // what the caller did not ask for
			MaxIdleConnsPerHost:   64,
			IdleConnTimeout:       time.Minute,
			ExpectContinueTimeout: time.Second,
		},
	}
}

// rewrite makes the request that the API gets. Hop-by-hop headers are gone already.
func (p *Proxy) rewrite(pr *httputil.ProxyRequest) {
	c := pr.In.Context().Value(callKey{}).(*call)
	out := pr.Out
	path, escaped := joinPath(c.path)
	out.URL.Scheme, out.URL.Host = p.upstream.Scheme, p.upstream.Host
	out.URL.Path = strings.TrimSuffix(p.upstream.Path, "/") + path
	out.URL.RawPath = strings.TrimSuffix(p.upstream.EscapedPath(), "/") + escaped
	out.Host = ""
	out.Trailer = nil // it comes after everything that was checked

	for name := range out.Header {
		if !forwarded(name) {
			delete(out.Header, name)
		}
	}
	pr.SetXForwarded()
	if credential := p.cfg.Credential; credential != nil {
		out.Header.Set(credential.Header, credential.value)
	}
	if c.record.Fence != 0 {
		out.Header.Set(headerFence, strconv.FormatUint(uint64(c.record.Fence), 10))
		out.Header.Set(headerKey, string(c.record.Key))
		out.Header.Set(headerAgent, c.record.Agent)
	}
}

// forwarded reports whether a caller's header goes to the API. Headers that would speak for the
// caller there do not, nor those that proxies alone may set, nor those that make some servers
// see another method or path. A name with '_' is the same as one with '-' to servers that make
// variables of them.
func forwarded(name string) bool {
	for _, prefix := range []string{headerPrefix, "X-Forwarded-", "X-Original-", "X-Rewrite-", "X-Remote-"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	switch name {
	case "Authorization", "Proxy-Authorization", "Cookie", "Te",
		"X-Http-Method", "X-Http-Method-Override", "X-Method-Override", "X-Real-Ip":
		return false
	}
	return !strings.Contains(name, "_")
}

// clean takes from an answer what would let a caller do without the proxy, and what only the
// proxy may set.
func (p *Proxy) clean(res *http.Response) error {
	res.Header.Del("Set-Cookie")
	res.Header.Del(headerRefused)
	credential := p.cfg.Credential
	if credential == nil {
		return nil
	}
	for name, values := range res.Header {
		if strings.Contains(strings.Join(values, "\n"), credential.secret) {
			delete(res.Header, name)
		}
	}
	return nil
}

// failed answers when the API did not. The error's text is not shown: it may hold
// what the caller must not see.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	c := r.Context().Value(callKey{}).(*call)
	if clientGone(r.Context()) {
		c.leave()
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		c.refuse(p.tooLarge())
		return
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		no := unreachable("the guard cannot reach the API")
		no.status = http.StatusBadGateway
		c.refuse(no)
		return
	}
	no := &refusal{
		status: http.StatusBadGateway, code: interlock.CodeOutcomeUnknown, key: c.record.Key, action: interlock.ActReRead,
		detail: "the API did not answer completely: the outcome is unknown",
		next:   "check the state first, then decide again",
	}
	if errors.Is(err, context.DeadlineExceeded) {
		no.status = http.StatusGatewayTimeout
	}
	c.refuse(no)
}
