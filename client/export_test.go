package client

import (
	"context"
	"net"
)

// DialLookup is Dial with a resolver of the test.
func DialLookup(
	ctx context.Context, cfg Config, lookup func(context.Context, string) ([]string, error),
) (*Client, error) {
	servers := listOf(cfg.Addrs)
	servers.Lookup = lookup
	return dialFirst(ctx, dialer(cfg, servers), servers, cfg)
}

// DialOver is Dial with a dialer of the test.
func DialOver(ctx context.Context, dialer Dialer, cfg Config) (*Client, error) {
	return dialFirst(ctx, dialer, listOf(cfg.Addrs), cfg)
}

// Known is how many leases the client counts in its heartbeats.
func Known(c *Client) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sess.known(false).Count
}

// DialThrough is Dial over a network of the test.
func DialThrough(
	ctx context.Context, connect func(ctx context.Context, network, addr string) (net.Conn, error), cfg Config,
) (*Client, error) {
	servers := listOf(cfg.Addrs)
	servers.Connect = connect
	return dialFirst(ctx, dialer(cfg, servers), servers, cfg)
}

// Hopeless reports whether no other attempt overcomes the refusal of an end.
var Hopeless = hopeless
