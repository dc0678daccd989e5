package client

import (
	"context"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// SetQueue registers a queue of tasks, or replaces its settings.
func (c *Client) SetQueue(ctx context.Context, q interlock.TaskQueue) error {
	q.Groups = slices.Clone(q.Groups)
	k := c.newCall(proto.OpSetQueue)
	k.op.Queue = &q
	_, err := c.do(ctx, k, "the registration of queue "+q.Name)
	return err
}

// DropQueue forgets a queue that has no task which is not settled.
func (c *Client) DropQueue(ctx context.Context, name string) error {
	k := c.newCall(proto.OpDropQueue)
	k.op.Name = name
	_, err := c.do(ctx, k, "the removal of queue "+name)
	return err
}

// Queues returns the state of the queues of the namespace, by their names.
func (c *Client) Queues(ctx context.Context) (list []interlock.QueueStatus, err error) {
	for after := ""; ; {
		k := c.newCall(proto.OpListQueues)
		k.op.Name = after
		got, err := c.do(ctx, k, "the list of queues")
		if err != nil {
			return nil, err
		}
		for _, q := range got.Queues {
			q.Groups = slices.Clone(q.Groups)
			list = append(list, q)
		}
		if !got.More || len(got.Queues) == 0 {
			return list, nil
		}
		after = list[len(list)-1].Name
	}
}
