package client

import (
	"runtime"

	"github.com/interlockdev/interlock/proto"
)

// write sends what is ready, as much as there is in each frame.
func (c *Client) write(n *conn) {
	var frame proto.ClientFrame
	for range n.wake {
		// Whoever made the call that woke us is rarely alone: let the others that
		// can run add theirs to the frame.
		runtime.Gosched()
		for {
			frame.Reset()
			c.mu.Lock()
			dead := n.dead
			if !dead {
				c.fill(n, &frame)
			}
			c.mu.Unlock()
			if dead {
				return
			}
			if len(frame.Ops) == 0 {
				break
			}
			if n.link.Send(&frame) != nil {
				n.link.Close(nil) // the reader learns why
			}
		}
	}
}

// fill moves calls into a frame. mu is held.
func (c *Client) fill(n *conn, frame *proto.ClientFrame) {
	s, size := c.sess, 0
	if c.conn != n || s == nil {
		return
	}
	var add func(k *call) bool
	add = func(k *call) bool {
		if size += k.op.Size(); size > proto.MaxFrameBytes || len(frame.Ops) == proto.MaxFrameOps {
			return false
		}
		if ttl := k.ttl(); ttl > 0 && s.want(ttl, c.now) {
			c.look()
			if beat := c.newBeat(s); !add(beat) {
				c.front = append([]*call{beat}, c.front...)
				return false
			}
		}
		if k.op.Seq == 0 {
			s.window.add(k)
		}
		k.phase = max(k.phase, sent)
		k.op.Slot, k.op.Acked = s.slot, 0
		if s.window.low > n.acked {
			n.acked = s.window.low
			k.op.Acked = n.acked
		}
		frame.Ops = append(frame.Ops, k.op)
		return true
	}
	for len(c.front) > 0 && s.window.open() < windowSize-1 {
		if !add(c.front[0]) {
			return
		}
		c.front = c.front[1:]
	}
	moved := 0
	for moved < len(c.queue) && s.window.open() < windowLimit && add(c.queue[moved]) {
		moved++
	}
	rest := copy(c.queue, c.queue[moved:])
	clear(c.queue[rest:])
	c.queue = c.queue[:rest]
}

// submit makes a call ready to be sent. mu is held.
func (c *Client) submit(k *call) {
	c.queue = append(c.queue, k)
	if c.conn != nil && len(c.queue) == 1 {
		c.conn.ring()
	}
}

// submitFirst is submit for what must not wait behind the others.
func (c *Client) submitFirst(k *call) {
	c.front = append(c.front, k)
	if c.conn != nil {
		c.conn.ring()
	}
}
