package proto

import (
	"github.com/interlockdev/interlock"
)

// AppendTo appends the frame's encoding to b.
func (f *ServerFrame) AppendTo(b []byte) []byte {
	b = appendUint(b, 1, uint64(f.Shard))
	b = appendUint(b, 2, uint64(f.Epoch))
	for i := range f.Replies {
		b = openMessage(b, 3)
		start := len(b)
		b = f.Replies[i].appendTo(b)
		b = closeMessage(b, start)
	}
	if f.GoAway != nil {
		b = appendGoAway(b, 4, f.GoAway)
	}
	return b
}

func (r *Reply) appendTo(b []byte) []byte {
	b = appendUint(b, 1, uint64(r.Slot))
	b = appendUint(b, 2, r.Seq)
	b = appendUint(b, 3, uint64(r.Outcome))
	b = appendUint(b, 4, uint64(r.Index))
	if !r.Lease.ID.IsZero() {
		b = openMessage(b, 5)
		start := len(b)
		b = appendLease(b, &r.Lease)
		b = closeMessage(b, start)
	}
	if t := r.Ticket; t != nil {
		b = openMessage(b, 6)
		start := len(b)
		b = appendID(b, 1, (*[16]byte)(&t.ID))
		b = appendUint(b, 2, uint64(uint32(t.Position)))
		b = appendUint(b, 3, uint64(uint32(t.Length)))
		b = appendDuration(b, 4, t.ETA)
		b = closeMessage(b, start)
	}
	if s := r.Session; s != nil {
		b = openMessage(b, 7)
		start := len(b)
		b = appendID(b, 1, (*[16]byte)(&s.ID))
		b = appendString(b, 2, s.Name)
		b = appendString(b, 3, s.Agent)
		b = appendDuration(b, 4, s.TTL)
		b = appendDuration(b, 5, s.ExpiresIn)
		b = closeMessage(b, start)
	}
	for i := range r.Losses {
		b = openMessage(b, 8)
		start := len(b)
		b = openMessage(b, 1)
		inner := len(b)
		b = appendLease(b, &r.Losses[i].Lease)
		b = closeMessage(b, inner)
		b = appendString(b, 2, r.Losses[i].Code)
		b = appendString(b, 3, r.Losses[i].Message)
		b = closeMessage(b, start)
	}
	b = appendString(b, 9, r.Code)
	b = appendString(b, 10, r.Message)
	if r.Conflict != nil {
		b = openMessage(b, 11)
		start := len(b)
		b = r.Conflict.appendTo(b)
		b = closeMessage(b, start)
	}
	if r.Advice != nil {
		b = appendAdvice(b, 12, r.Advice)
	}
	b = appendTexts(b, 13, r.Warnings)
	b = appendString(b, 14, r.EndedBy)
	for i := range r.Patterns {
		b = appendPattern(b, 15, &r.Patterns[i])
	}
	b = appendBool(b, 16, r.More)
	if r.Settings != nil {
		b = appendSettings(b, 17, r.Settings)
	}
	b = appendUint(b, 18, uint64(r.Version))
	for i := range r.Documents {
		b = appendDocument(b, 19, &r.Documents[i])
	}
	if r.Packet != nil {
		b = appendPacket(b, 20, r.Packet)
	}
	for i := range r.Effects {
		b = appendEffect(b, 21, &r.Effects[i])
	}
	for i := range r.Contention {
		b = r.Contention[i].appendTo(b, 22)
	}
	for i := range r.Tasks {
		b = appendTask(b, 23, &r.Tasks[i])
	}
	for i := range r.Handed {
		b = r.Handed[i].appendTo(b, 24)
	}
	for i := range r.Queues {
		b = appendQueueStatus(b, 25, &r.Queues[i])
	}
	for i := range r.Log {
		b = appendLogEntry(b, 26, &r.Log[i])
	}
	b = appendUint(b, 27, r.Next)
	return appendBool(b, 28, r.AsAsked)
}

func appendAdvice(b []byte, num byte, a *interlock.Advice) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, a.Action)
	b = appendDuration(b, 2, a.RetryAfter)
	b = appendString(b, 3, a.Message)
	return closeMessage(b, start)
}

func (c *Conflict) appendTo(b []byte) []byte {
	b = appendString(b, 1, c.Key)
	b = appendString(b, 2, c.Kind)
	for i := range c.Holders {
		h := &c.Holders[i]
		b = openMessage(b, 3)
		start := len(b)
		b = appendString(b, 1, h.Agent)
		b = appendString(b, 2, h.Session)
		b = appendString(b, 3, h.Flow)
		b = appendString(b, 4, h.Purpose)
		b = appendString(b, 5, h.Key)
		b = appendUint(b, 6, uint64(h.Mode))
		b = appendUint(b, 7, uint64(h.Fence))
		b = appendUint(b, 8, uint64(h.Liveness))
		b = appendDuration(b, 9, h.HeartbeatAge)
		b = appendDuration(b, 10, h.Held)
		b = appendDuration(b, 11, h.ExpiresIn)
		b = appendString(b, 12, h.Progress)
		b = appendUint(b, 13, uint64(h.Count))
		if h.Parking != nil {
			b = appendParking(b, 14, h.Parking)
		}
		b = appendString(b, 15, h.EndedBy)
		if h.Yield != nil {
			b = appendYield(b, 16, h.Yield)
		}
		b = closeMessage(b, start)
	}
	b = appendUint(b, 4, uint64(uint32(c.More)))
	b = appendUint(b, 5, uint64(uint32(c.Queue.Length)))
	b = appendDuration(b, 6, c.Queue.ETA)
	for i := range c.Cycle {
		s := &c.Cycle[i]
		b = openMessage(b, 7)
		start := len(b)
		b = appendString(b, 1, s.Agent)
		b = appendString(b, 2, s.Session)
		b = appendString(b, 3, s.Flow)
		b = appendString(b, 4, s.Key)
		b = appendUint(b, 5, uint64(s.Mode))
		b = appendBool(b, 6, s.Victim)
		b = appendUint(b, 7, uint64(s.Next))
		b = closeMessage(b, start)
	}
	if x := c.Capacity; x != nil {
		b = openMessage(b, 8)
		start := len(b)
		b = appendUint(b, 1, uint64(x.Permits))
		b = appendUint(b, 2, uint64(x.Used))
		b = appendUint(b, 3, uint64(x.Tokens))
		b = appendUint(b, 4, uint64(x.Available))
		b = appendDuration(b, 5, x.Refill)
		for i := range x.Groups {
			g := &x.Groups[i]
			b = openMessage(b, 6)
			inner := len(b)
			b = appendString(b, 1, g.Name)
			b = appendUint(b, 2, uint64(g.Min))
			b = appendUint(b, 3, uint64(g.Max))
			b = appendUint(b, 4, uint64(g.Used))
			b = closeMessage(b, inner)
		}
		b = closeMessage(b, start)
	}
	return appendTexts(b, 9, c.Nearest)
}

// Decode replaces the frame's content by that of b. Nothing of b is kept.
func (f *ServerFrame) Decode(b []byte) error {
	f.Reset()
	for len(b) > 0 {
		x, rest, err := nextField(b)
		if err != nil {
			return err
		}
		b = rest
		switch x.tag {
		case 1<<3 | wireVarint:
			f.Shard = uint32(x.v)
		case 2<<3 | wireVarint:
			f.Epoch = interlock.Epoch(x.v)
		case 3<<3 | wireBytes:
			err = f.Next().decode(string(x.s))
		case 4<<3 | wireBytes:
			f.GoAway = &GoAway{}
			err = decodeGoAway(f.GoAway, string(x.s))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
