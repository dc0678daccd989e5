package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/apiclient"
	"github.com/interlockdev/interlock/guard/signed"
)

// Options are the parts of a Proxy. All but Calls are required.
type Options struct {
	Config   *Config
	API      *apiclient.Client
	Upstream *url.URL    // the API; its path goes before that of each call
	Records  io.Writer   // gets a Record for every call, one a line
	Failed   func(error) // gets the errors of records and calls that could not be written
	// Calls is where calls under way are kept, so that a guard that was killed and
	// started again holds their keys for as long as the API may be at them. Without it
	// calls of two holders can then be at the API at once.
	Calls Calls
}

// Proxy stands before an API.
type Proxy struct {
	cfg      *Config
	rules    []*rule
	api      *apiclient.Client
	upstream *url.URL
	hosts    map[string]bool
	signed   *statements // nil: no route demands them
	reverse  *httputil.ReverseProxy
	records  recorder
	turns    turns
	ledger   *ledger
	calls    atomic.Int64
}

// New makes a Proxy.
func New(o Options) (*Proxy, error) {
	rules, err := o.Config.rules()
	if err != nil {
		return nil, err
	}
	if o.Upstream.Host == "" || o.Upstream.Scheme != "http" && o.Upstream.Scheme != "https" || o.Upstream.User != nil ||
		o.Upstream.RawQuery != "" {
		return nil, fmt.Errorf(
			"%q is not the address of an API: want one such as https://api.example.com/v2", o.Upstream.Redacted(),
		)
	}
	cfg := *o.Config
	if cfg.MaxBodyBytes == 0 {
		cfg.MaxBodyBytes = defaultMaxBody
	}
	if cfg.MaxCalls == 0 {
		cfg.MaxCalls = defaultMaxCalls
	}
	if cfg.MaxWaiting == 0 {
		cfg.MaxWaiting = max(1, cfg.MaxCalls/4)
	}
	p := &Proxy{
		cfg: &cfg, rules: rules, api: o.API, upstream: o.Upstream, hosts: map[string]bool{},
		records: recorder{to: o.Records, failed: o.Failed}, turns: turns{line: cfg.MaxWaiting},
	}
	if cfg.Statements != nil {
		p.signed = newStatements(cfg.Statements, o.API)
		p.turns.keep = signed.MaxTTL + signed.Leeway
	}
	for _, host := range cfg.Hosts {
		p.hosts[strings.ToLower(host)] = true
	}
	p.reverse = p.newReverse()
	ledger, open, err := openLedger(o.Calls)
	if err != nil {
		return nil, &CallsError{err}
	}
	p.ledger = ledger
	for _, c := range open {
		p.hold(c)
	}
	return p, nil
}

// CallsError is why the calls of the guard before are not known.
type CallsError struct{ Err error }

func (e *CallsError) Error() string { return e.Err.Error() }
func (e *CallsError) Unwrap() error { return e.Err }

// Server is an HTTP server for the proxy, with its bounds set. Each call has a bound
// of its own besides.
func (p *Proxy) Server() *http.Server {
	return &http.Server{
		Handler: p, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
}

// call is one request on its way.
type call struct {
	http.ResponseWriter
	record Record
	rule   *rule
	path   []string // decoded, each segment by itself
	left   bool     // the caller has gone, and hears no answer
	toEnd  bool     // the call is carried out to its end, even if no caller hears the answer
}

// WriteHeader notes the status that goes out.
func (c *call) WriteHeader(status int) {
	if status >= 200 && c.record.Status == 0 {
		c.record.Status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *call) Write(b []byte) (int, error) {
	if c.record.Status == 0 {
		c.record.Status = http.StatusOK
	}
	n, err := c.ResponseWriter.Write(b)
	if err != nil && c.toEnd {
		// The rest of the API's answer is read: to end the call would be to let the next
		// holder's come while the API is at this one.
		return len(b), nil
	}
	return n, err
}

// Unwrap is for http.ResponseController.
func (c *call) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// bound ends the reading of a slow body a little after the call is over, and then the
// writing to a slow reader. It must not be sooner: when the time for reading ends in a
// call, the server takes its caller for gone, and all later ones of the connection.
// Where that is not supported, the context alone bounds the call.
func (c *call) bound(until time.Time) {
	control := http.NewResponseController(c.ResponseWriter)
	_ = control.SetReadDeadline(until.Add(time.Second))
	_ = control.SetWriteDeadline(until.Add(2 * time.Second))
}

// leave ends the call of a caller that has gone, with its connection: to return would
// be to answer 200.
func (c *call) leave() {
	c.left = true
	panic(http.ErrAbortHandler)
}

func (c *call) refuse(r *refusal) {
	c.record.Code = r.code
	r.write(c)
}

type callKey struct{}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	c := &call{ResponseWriter: w, record: Record{Time: start.UTC(), Method: r.Method, Path: r.URL.EscapedPath()}}
	whole := false
	defer func() {
		if !whole && !c.left {
			c.record.Code = interlock.CodeOutcomeUnknown // the answer broke off
		}
		c.record.Duration = time.Since(start).Milliseconds()
		p.records.write(&c.record)
	}()
	p.serve(c, r, start)
	whole = true
}

func (p *Proxy) serve(c *call, r *http.Request, start time.Time) {
	c.bound(start.Add(defaultTimeout))
	if p.calls.Add(1) > int64(p.cfg.MaxCalls) {
		p.calls.Add(-1)
		c.refuse(overloaded("too many calls are in progress"))
		return
	}
	defer p.calls.Add(-1)
	if no := p.admit(c, r); no != nil {
		c.refuse(no)
		return
	}

	end := start.Add(p.cfg.timeout(c.rule))
	c.bound(end)
	r.Body = http.MaxBytesReader(c.ResponseWriter, r.Body, p.cfg.MaxBodyBytes)
	ctx, cancel := context.WithDeadline(context.WithValue(r.Context(), callKey{}, c), end)
	defer cancel()
	if c.rule.Demand != DemandOpen {
		turn := p.turns.enter(c.record.Key, start)
		if turn == nil {
			c.refuse(overloaded("too many keys are tracked"))
			return
		}
		defer func() { turn.leave(time.Now()) }()
		if no := p.pass(ctx, c, r, turn); no != nil {
			if clientGone(ctx) {
				c.leave()
			}
			c.refuse(no)
			return
		}
		// From here on the call is carried out to its end, also if the caller leaves:
		// the next holder's turn must not come while the API is still at it.
		settled, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
		defer cancel()
		slot, err := p.ledger.begin(openCall{
			Key: c.record.Key, Fence: c.record.Fence, Timeout: p.cfg.timeout(c.rule).Milliseconds(),
		})
		if err != nil {
			p.records.failed(err)
			c.refuse(overloaded("the guard cannot record the call in its ledger"))
			return
		}
		defer func() {
			if err := p.ledger.end(slot); err != nil {
				p.records.failed(err)
			}
		}()
		ctx, c.toEnd = settled, true
	}
	p.reverse.ServeHTTP(c, r.WithContext(ctx))
}

// clientGone reports whether the caller has left, so that an answer has no receiver.
func clientGone(ctx context.Context) bool { return errors.Is(context.Cause(ctx), context.Canceled) }

// admit finds the route of a call, and refuses a call that cannot be guarded.
func (p *Proxy) admit(c *call, r *http.Request) *refusal {
	if apiclient.Foreign(r, p.hosts) {
		return &refusal{
			status: http.StatusForbidden, code: interlock.CodeForeignHost,
			detail: "the request is for another host, or comes from a page of another site",
			action: interlock.ActFixRequest,
			next:   "address the guard as localhost or by a name that its configuration lists, and call it from a program",
		}
	}
	if r.Header.Get("Upgrade") != "" || slices.Contains(neverMethods, r.Method) {
		return &refusal{
			status: http.StatusBadRequest, code: interlock.CodeUnsupported,
			detail: "a connection upgrade cannot be guarded",
			action: interlock.ActFixRequest, next: "send the request without an upgrade",
		}
	}
	path, err := splitPath(r.URL.EscapedPath())
	if err != nil {
		return &refusal{
			status: http.StatusBadRequest, code: interlock.CodeInvalidRequest, detail: "invalid path: " + err.Error(),
			action: interlock.ActFixRequest, next: "write the path as in the API's documentation",
		}
	}
	c.path = path
	allowed := map[string]bool{}
	for _, rule := range p.rules {
		found, ok := rule.fits(path)
		if !ok {
			continue
		}
		if !rule.takes(r.Method) {
			for _, m := range rule.Methods {
				allowed[m] = true
			}
			continue
		}
		c.rule, c.record.Key = rule, rule.keyFor(found)
		if r.ContentLength > p.cfg.MaxBodyBytes {
			return p.tooLarge()
		}
		return nil
	}
	if len(allowed) == 0 {
		return &refusal{
			status: http.StatusForbidden, code: interlock.CodeForbidden, detail: "no route of the guard allows this path",
			action: interlock.ActAskHuman,
			next:   "do not try other spellings; if the call is needed, ask the guard's operator for a route",
		}
	}
	list := make([]string, 0, len(allowed))
	for m := range allowed {
		list = append(list, m)
	}
	slices.Sort(list)
	c.Header().Set("Allow", strings.Join(list, ", "))
	return &refusal{
		status: http.StatusMethodNotAllowed, code: interlock.CodeMethodNotAllowed,
		detail: "this path takes " + strings.Join(list, " and ") + " only",
		action: interlock.ActFixRequest, next: "use a method in the Allow header",
	}
}

func overloaded(detail string) *refusal {
	return &refusal{
		status: http.StatusServiceUnavailable, code: interlock.CodeOverloaded, detail: detail,
		action: interlock.ActRetry, after: time.Second, next: "nothing was done: repeat the request a little later",
	}
}

func (p *Proxy) tooLarge() *refusal {
	return &refusal{
		status: http.StatusRequestEntityTooLarge, code: interlock.CodeBodyTooLarge,
		detail: fmt.Sprintf("the body has more than %d bytes", p.cfg.MaxBodyBytes), action: interlock.ActFixRequest,
		next: "send less",
	}
}
