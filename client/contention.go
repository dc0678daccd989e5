package client

import (
	"context"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// Contention returns how commits and leases fare in the namespace, by pattern or class of keys.
func (c *Client) Contention(ctx context.Context) ([]interlock.Contention, error) {
	got, err := c.do(ctx, c.newCall(proto.OpGetContention), "the figures of contention")
	if err != nil {
		return nil, err
	}
	return got.Reply.Contention, nil
}
