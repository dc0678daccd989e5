package client

import (
	"runtime"

	"github.com/interlockdev/interlock/proto"
)

// write sends the ready calls, as many as there are in each frame, until the link is dead.
func (c *Client) write(n *conn) {
	var out proto.ClientFrame
	for range n.wake {
		// The caller that woke us is rarely alone: let the others that can run add theirs to
		// the frame.
		runtime.Gosched()
		for {
			out.Reset()
			c.mu.Lock()
			dead := n.dead
			if !dead {
				c.fill(n, &out)
			}
			c.mu.Unlock()
			if dead {
				return
			}
			if len(out.Ops) == 0 {
				break
			}
			if n.link.Send(&out) != nil {
				n.link.Close(nil) // the reader learns why
			}
		}
	}
}

// fill moves calls into a frame. mu is held.
//
// At most one bulky call goes into a frame, as the last one: what is small and ready
// meanwhile goes before the next.
func (c *Client) fill(n *conn, frame *proto.ClientFrame) {
	s, size := c.sess, 0
	if c.conn != n || s == nil {
		return
	}
	for len(c.front) > 0 && s.window.open() < windowSize-1 {
		k := c.front[0]
		if !c.add(n, frame, &size, k) {
			return
		}
		c.front = c.front[1:]
		if k.bulky {
			return
		}
	}
	var bulky *call
	full := false
	rest := c.queue[:0]
	for _, k := range c.queue {
		full = full || s.window.open() >= windowLimit
		switch {
		case full:
		case k.bulky && bulky == nil:
			bulky = k
			continue
		case !k.bulky && c.add(n, frame, &size, k):
			continue
		case !k.bulky:
			full = true
		}
		rest = append(rest, k)
	}
	if bulky != nil && !c.add(n, frame, &size, bulky) {
		rest = append(rest, bulky)
	}
	clear(c.queue[len(rest):])
	c.queue = rest
}

// add moves a call into a frame, unless the frame is full. size is that of the calls in the
// frame that are not bulky.
func (c *Client) add(n *conn, frame *proto.ClientFrame, size *int, k *call) bool {
	if len(frame.Ops) == proto.MaxFrameOps {
		return false
	}
	if !k.bulky {
		if *size += k.op.Size(); *size > proto.MaxFrameBytes-proto.MaxOpBytes {
			return false
		}
	}
	s := c.sess
	if ttl := k.ttl(); ttl > 0 && s.want(ttl, c.now) {
		c.look()
		if beat := c.newBeat(s, false); !c.add(n, frame, size, beat) {
			c.front = append([]*call{beat}, c.front...)
			return false
		}
	}
	if k.op.Seq == 0 {
		s.window.add(k)
	}
	if k.phase = max(k.phase, sent); k.stands() && k.since.IsZero() {
		k.since = c.now()
	}
	k.op.Slot, k.op.Acked = s.slot, 0
	if s.window.low > n.acked {
		n.acked = s.window.low
		k.op.Acked = n.acked
	}
	frame.Ops = append(frame.Ops, k.op)
	return true
}

// submit makes a call ready to be sent. mu is held.
func (c *Client) submit(k *call) {
	c.queue = append(c.queue, k)
	if c.conn != nil && len(c.queue) == 1 {
		c.conn.ring()
	}
}

// submitFirst is submit for a call that must not wait behind the others.
func (c *Client) submitFirst(k *call) {
	c.front = append(c.front, k)
	if c.conn != nil {
		c.conn.ring()
	}
}
