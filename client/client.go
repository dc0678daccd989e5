package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/endpoint"
	"github.com/interlockdev/interlock/proto"
)

// Client is one session with a server, shared by any number of goroutines.
//
// One mutex guards all that is shared. Three goroutines live as long as the
// Client or its link: run connects and takes answers, a writer sends the calls that are
// ready, keep sends heartbeats and watches the clock.
type Client struct {
	cfg  Config
	dial Dialer
	// servers are those of cfg.Addrs; nil if a Dialer of the caller finds the server.
	servers *endpoint.List
	seat    *seat // nil without Config.Seat

	ctx    context.Context // of the goroutines
	cancel context.CancelFunc
	ended  sync.WaitGroup
	flows  atomic.Uint64
	calls  sync.Pool
	kick   chan struct{} // keep must look again

	mu       sync.Mutex // guards the fields below
	sess     *session
	slot     uint32
	conn     *conn // nil while there is no link
	front    []*call
	queue    []*call
	late     []*call // held back, and to be sent as new
	progress string
	outage   time.Time // since when there is no link; zero when there is one
	trouble  error     // of the last attempt to connect in this outage
	silences int       // how many attempts in this outage were too short for a server
	refusal  *interlock.Error
	openID   string        // the request id of the session to be opened
	goAway   time.Duration // when the server said that it stops: how long to stay away
	closed   error         // ErrClosed once Close was called
}

// Dial connects to the active server of cfg.Addrs and opens a session. It tries a single
// address once, and several for the time of a fail-over, 10 s; or for cfg.RetryFor. The error is an
// *interlock.Error when a server refused, and else wraps ErrUnreachable.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	if len(cfg.Addrs) == 0 {
		return nil, errors.New("client: Config.Addrs is empty: name the host:port of a server's session port, such as " +
			"127.0.0.1:7421")
	}
	servers := listOf(cfg.Addrs)
	return dialFirst(ctx, dialer(cfg, servers), servers, cfg)
}

// New does the same over any Dialer, such as that of a server in this process.
func New(ctx context.Context, dialer Dialer, cfg Config) (*Client, error) {
	return dialFirst(ctx, dialer, nil, cfg)
}

func dialFirst(ctx context.Context, dialer Dialer, servers *endpoint.List, cfg Config) (*Client, error) {
	seat, err := takeSeat(cfg.Seat)
	if err != nil {
		return nil, err
	}
	c := &Client{
		cfg: cfg, dial: dialer, servers: servers, seat: seat, kick: make(chan struct{}, 1),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	first, err := c.first(ctx)
	if err != nil {
		c.cancel()
		seat.leave(false)
		return nil, err
	}
	c.ended.Go(func() { c.run(first) })
	c.ended.Go(c.keep)
	return c, nil
}

// first makes the first link and opens the session.
func (c *Client) first(ctx context.Context) (*conn, error) {
	began, pace := time.Now(), c.pace()
	for {
		patience := c.cfg.RetryFor
		if c.several() {
			patience = max(patience, takeover)
		}
		link, err := c.reach(ctx)
		if err == nil {
			return link, nil
		}
		if refusal, ok := errors.AsType[*interlock.Error](err); ok && !refusal.Code.Retryable() {
			return nil, refusal
		}
		if ctx.Err() != nil || time.Since(began) >= patience {
			if refusal, ok := errors.AsType[*interlock.Error](err); ok {
				return nil, refusal
			}
			if strings.Contains(err.Error(), "refused") { // by the machine, not by a server
				err = fmt.Errorf("start one with `interlock serve --data-dir DIR`, or correct Config.Addrs: %w", err)
			}
			return nil, c.unreachable(err)
		}
		if pace.Wait(ctx, 0) != nil {
			return nil, c.unreachable(err)
		}
	}
}

func (c *Client) unreachable(err error) error {
	where := ""
	if len(c.cfg.Addrs) > 0 {
		where = " at " + strings.Join(c.cfg.Addrs, ", ")
	}
	if err == nil {
		return fmt.Errorf("%w%s", ErrUnreachable, where)
	}
	return fmt.Errorf("%w%s: %w", ErrUnreachable, where, err)
}

// CheckFence asks whether a write under fence to key may go ahead. nil means yes;
// an *interlock.Error with CodeFenced means no.
func (c *Client) CheckFence(ctx context.Context, key interlock.Key, fence interlock.Fence) error {
	k := c.newCall(proto.OpCheckFence)
	k.op.Key, k.op.Fence = key, fence
	_, err := c.do(ctx, k, "the check of "+string(key))
	return err
}

// begin submits an operation, unless the client can do nothing more.
func (c *Client) begin(k *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	c.submit(k)
	return nil
}

// do carries out an operation that never stands in line. The result may also have more details
// of a refusal.
func (c *Client) do(ctx context.Context, k *call, what string) (*found, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	if err := c.begin(k); err != nil {
		return nil, err
	}
	return c.answer(ctx, k, what)
}

// answer waits for the answer to an operation that has begun.
func (c *Client) answer(ctx context.Context, k *call, what string) (*found, error) {
	if _, ended := k.next(ctx); ended {
		switch was, refusal := c.forget(k); was {
		case ready:
			return nil, c.notSent(ctx, refusal)
		case sent:
			return nil, unknown(ctx, what)
		case standing:
			return nil, fmt.Errorf("waiting for the end of %s: %w", what, context.Cause(ctx))
		}
	}
	got, err := k.found, k.err
	c.free(k)
	return got, err
}

// notSent is the error of a caller when its context ended before the server took the request:
// it was refused so far, or there was no server.
func (c *Client) notSent(ctx context.Context, refusal error) error {
	if refusal == nil {
		c.mu.Lock()
		trouble := c.trouble
		c.mu.Unlock()
		refusal = c.unreachable(trouble)
	}
	return fmt.Errorf("%w: %w", refusal, context.Cause(ctx))
}

// usable returns why nothing can be asked for, or nil. mu is held.
func (c *Client) usable() error {
	switch {
	case c.closed != nil:
		return c.closed
	case c.refusal != nil:
		return c.refusal
	}
	return nil
}

// unknown is the error of a caller when its context ended before an answer came.
func unknown(ctx context.Context, what string) error {
	cause := context.Cause(ctx)
	return fmt.Errorf("%w: %w", &interlock.Error{
		Code:    interlock.CodeOutcomeUnknown,
		Message: what + " was not answered in time: its outcome is unknown",
	}, cause)
}

// SetProgress sets what the next heartbeat reports of this session to others, such as "3/5
// files". It is cut off at interlock.MaxProgressBytes. A text that differs from the one before
// keeps the leases that have a stall; they make the client report it soon.
func (c *Client) SetProgress(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress = clip(text, interlock.MaxProgressBytes)
	if c.sess != nil && c.sess.hurry(c.progress) {
		c.look()
	}
}

// SessionName is the public name of the session, as other agents see it. After the end of its
// session a client gets a new one with another name.
func (c *Client) SessionName() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sess == nil {
		return ""
	}
	return c.sess.name
}

// SessionID is the id of the session, for a process that acts in its name, such as a command
// that declares a wait. It is a secret: any process that knows it may end the session. After
// the end of its session a client gets a new one with another id.
func (c *Client) SessionID() interlock.SessionID {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sess == nil {
		return interlock.SessionID{}
	}
	return c.sess.id
}

// Close ends the session: its leases are released, its waits end. When ctx ends
// before the server has confirmed it, or no server answers within the session's
// ttl, the session ends by that ttl.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	if c.closed != nil {
		c.mu.Unlock()
		return nil
	}
	c.closed = ErrClosed
	sess := c.sess
	for _, k := range c.everything() {
		c.dismiss(k)
		k.finish(nil, ErrClosed)
	}
	c.front, c.queue, c.late = nil, nil, nil
	var k *call
	var patience time.Duration
	if sess != nil {
		patience = sess.ttl // a grant that crosses may change it
		why := &interlock.Error{Code: interlock.CodeSessionEnded, Message: "the client was closed, which released its leases"}
		for _, g := range sess.leases {
			sess.lost(g, why, true)
		}
		sess.waits, sess.tickets, sess.followers = map[uint64]*call{}, map[interlock.TicketID]*call{}, map[*call]struct{}{}
		sess.window = window{last: sess.window.last, low: sess.window.last}
		k = c.newCall(proto.OpClose)
		c.submit(k)
	}
	c.mu.Unlock()
	var err error
	if k != nil {
		limit, stop := context.WithTimeout(ctx, patience)
		select {
		case <-k.news:
			if err = k.err; sessionGone(err) {
				err = nil
			}
		case <-limit.Done():
			err = unknown(limit, "the end of the session")
		}
		stop()
	}
	c.cancel()
	c.mu.Lock()
	if c.conn != nil {
		c.conn.link.Close(nil)
	}
	c.mu.Unlock()
	c.ended.Wait()
	c.seat.leave(err == nil)
	return err
}

// everything returns all calls that may have a waiter. mu is held.
func (c *Client) everything() (list []*call) {
	for _, k := range c.front {
		if k.op.Seq == 0 { // else it stands in the window too
			list = append(list, k)
		}
	}
	list = append(append(list, c.queue...), c.late...)
	if c.sess != nil {
		list = append(list, c.sess.window.all()...)
		for _, k := range c.sess.tickets {
			list = append(list, k)
		}
		for k := range c.sess.followers {
			list = append(list, k)
		}
	}
	return list
}
