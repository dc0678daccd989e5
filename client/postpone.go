package client

import (
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// A server refuses more requests a second than a quota allows, before it looks at
// them. That decides nothing, so the client holds such a request back and sends it
// again, paced by the server's own word on when there is room. All functions are
// called with Client.mu held.

// postpone takes a refusal for want of quota, and reports whether the operation
// will be sent again.
func (c *Client) postpone(s *session, k *call, r *proto.Reply, at interlock.At) bool {
	if r.Outcome != proto.Refused || r.Code != interlock.CodeQuota || k.forgotten && k.stands() && !k.repeated {
		return false
	}
	if k.pace == nil {
		k.pace = &Backoff{Most: reconnectMost}
	}
	k.err = r.Error(uint32(at.Shard), at.Epoch)
	if !k.repeated {
		// It was sent once and refused, so nothing came of it: it is as good as new.
		s.window.remove(r.Seq)
		k.op.Seq, k.phase = 0, ready
		c.late = append(c.late, k)
	}
	var estimate time.Duration
	if r.Advice != nil {
		estimate = r.Advice.RetryAfter
	}
	var timer *time.Timer
	timer = time.AfterFunc(k.pace.Next(estimate), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if k.later == timer {
			c.recall(k)
		}
	})
	k.later = timer
	return true
}

// recall has an operation sent again that was held back.
func (c *Client) recall(k *call) {
	c.dismiss(k)
	switch {
	case k.op.Kind == proto.OpPoll && k.target == nil:
		c.free(k) // the wait is over
	case k.op.Seq != 0:
		c.submitFirst(k)
	default:
		c.submit(k)
	}
}

// dismiss makes a call one that is not held back.
func (c *Client) dismiss(k *call) {
	if k.later == nil {
		return
	}
	k.later.Stop()
	k.later = nil
	for i, other := range c.late {
		if other == k {
			c.late = append(c.late[:i], c.late[i+1:]...)
			break
		}
	}
}
