package client

import (
	"context"

	"github.com/interlockdev/interlock"
)

// Client is one session with a server, shared by any number of goroutines.
type Client struct{}

// Dial connects to the first of cfg.Addrs that answers and opens a session. It
// returns an error when none answers before ctx ends, or when the server refuses.
func Dial(ctx context.Context, cfg Config) (*Client, error) { return nil, ErrUnreachable }

// New does the same over any Dialer, such as that of a server in this process.
func New(ctx context.Context, dialer Dialer, cfg Config) (*Client, error) {
	return nil, ErrUnreachable
}

// Acquire asks for a lease and returns it, or why not:
//
//   - *interlock.Error with CodeHeld or CodeDeadlock and the rest of the server's
//     refusals; with CodeOutcomeUnknown when ctx ended before the answer came. The
//     request is then given up in the background.
//   - an error that is ErrSkipped, when Request.OnConflict is interlock.Skip and
//     somebody else already does it.
//   - the context's cause, wrapped, when it ended while the request stood in line. The
//     place in line is left, so nothing is granted later to nobody.
//   - ErrUnreachable, wrapped, when it was never sent; ErrClosed after Close.
func (c *Client) Acquire(ctx context.Context, req Request) (*Lease, error) {
	return nil, ErrUnreachable
}

// CheckFence asks whether a write under fence to key may go ahead. nil means yes;
// an *interlock.Error with CodeFenced means no.
func (c *Client) CheckFence(ctx context.Context, key interlock.Key, fence interlock.Fence) error {
	return ErrUnreachable
}

// SetProgress is what the next heartbeats tell others of this session, such as
// "3/5 files".
func (c *Client) SetProgress(text string) {}

// SessionName is the public name of the session, as other agents see it.
func (c *Client) SessionName() string { return "" }

// Close ends the session: its leases are released, its waits end. When ctx ends
// before the server has confirmed it, the session ends by its ttl.
func (c *Client) Close(ctx context.Context) error { return nil }
