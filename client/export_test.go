package client

import "context"

// DialLookup is Dial with a resolver of the test.
func DialLookup(
	ctx context.Context, cfg Config, lookup func(context.Context, string) ([]string, error),
) (*Client, error) {
	servers := listOf(cfg.Addrs)
	servers.Lookup = lookup
	return dialFirst(ctx, dialer(cfg, servers), servers, cfg)
}
