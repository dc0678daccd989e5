package client

import (
	"context"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// Contention counts how commits and leases fare at the keys of a pattern.
type Contention struct {
	interlock.Contention
	Advice *interlock.Advice // which of the two would fare better; nil if nothing speaks for a change
}

// Contention is how commits and leases fare in the namespace, by pattern or class of keys.
func (c *Client) Contention(ctx context.Context) ([]Contention, error) {
	got, err := c.do(ctx, c.newCall(proto.OpGetContention), "the figures of contention")
	if err != nil {
		return nil, err
	}
	list := make([]Contention, len(got.Reply.Contention))
	for i, row := range got.Reply.Contention {
		list[i] = Contention(row)
	}
	return list, nil
}
