package proto

import (
	"time"

	"github.com/interlockdev/interlock"
)

// MaxFrameOps bounds the operations of one frame, because an empty operation is
// much smaller on the wire than in memory.
const MaxFrameOps = 8192

// AppendTo appends the frame's encoding to b.
func (f *ClientFrame) AppendTo(b []byte) []byte {
	for i := range f.Ops {
		b = openMessage(b, 1)
		start := len(b)
		b = f.Ops[i].appendTo(b)
		b = closeMessage(b, start)
	}
	return b
}

func (o *Op) appendTo(b []byte) []byte {
	b = appendUint(b, 1, uint64(o.Slot))
	b = appendUint(b, 2, o.Seq)
	b = appendUint(b, 3, o.Acked)
	b = openMessage(b, byte(o.Kind))
	start := len(b)
	switch o.Kind {
	case OpOpen:
		b = appendString(b, 1, o.RequestID)
		b = appendString(b, 2, o.Agent)
		b = appendDuration(b, 3, o.TTL)
	case OpAttach, OpPoll, OpLeave, OpGetLease:
		b = appendID(b, 1, &o.ID)
	case OpHeartbeat:
		b = appendString(b, 1, o.Progress)
	case OpClose:
	case OpAcquire:
		b = appendClaims(b, 1, o.Claims)
		b = appendString(b, 2, o.Flow)
		b = appendString(b, 3, o.Purpose)
		b = appendString(b, 4, o.Trace)
		b = appendDuration(b, 5, o.TTL)
		b = appendDuration(b, 6, o.Grace)
		b = appendDuration(b, 7, o.MaxHold)
		b = appendSint(b, 8, o.Priority)
		b = appendUint(b, 9, uint64(o.OnConflict))
	case OpRenew:
		b = appendID(b, 1, &o.ID)
		b = appendString(b, 2, o.Progress)
	case OpRelease:
		b = appendID(b, 1, &o.ID)
		b = appendString(b, 2, o.Outcome)
		b = appendString(b, 3, o.Note)
	case OpCheckFence:
		b = appendString(b, 1, o.Key)
		b = appendUint(b, 2, uint64(o.Fence))
	default:
		panic("proto: an operation without a kind")
	}
	return closeMessage(b, start)
}

func appendClaims(b []byte, num byte, claims []interlock.Claim) []byte {
	for i := range claims {
		b = openMessage(b, num)
		start := len(b)
		b = appendString(b, 1, claims[i].Key)
		b = appendUint(b, 2, uint64(claims[i].Mode))
		b = closeMessage(b, start)
	}
	return b
}

// Size is an upper bound of the operation's encoded length.
func (o *Op) Size() int {
	n := 128 + len(o.RequestID) + len(o.Agent) + len(o.Flow) + len(o.Purpose) + len(o.Trace) +
		len(o.Key) + len(o.Outcome) + len(o.Note) + len(o.Progress)
	for i := range o.Claims {
		n += 16 + len(o.Claims[i].Key)
	}
	return n
}

// Decode replaces the frame's content by what b says. Nothing of b is kept. Each
// operation's strings share one piece of memory, and no two operations do, so
// that what outlives its frame does not keep all of it. An operation without a
// body, or with one that this version does not know, has Kind 0.
func (f *ClientFrame) Decode(b []byte) error {
	f.Reset()
	for len(b) > 0 {
		x, rest, err := nextField(b)
		if err != nil {
			return err
		}
		b = rest
		if x.tag != 1<<3|wireBytes {
			continue
		}
		if len(f.Ops) == MaxFrameOps {
			return badFrame("it has more than %d operations", MaxFrameOps)
		}
		if err := grow(&f.Ops).decode(string(x.s)); err != nil {
			return err
		}
	}
	return nil
}

func (o *Op) decode(s string) error {
	body := ""
	for s != "" {
		f, rest, err := nextField(s)
		if err != nil {
			return err
		}
		s = rest
		switch f.tag {
		case 1<<3 | wireVarint:
			o.Slot = uint32(f.v)
		case 2<<3 | wireVarint:
			o.Seq = f.v
		case 3<<3 | wireVarint:
			o.Acked = f.v
		default:
			if num := f.tag >> 3; f.tag&7 == wireBytes && num >= uint64(OpOpen) && num <= uint64(OpCheckFence) {
				if o.Kind != 0 {
					return badFrame("an operation has two bodies")
				}
				o.Kind, body = OpKind(num), f.s
			}
		}
	}
	return o.decodeBody(body)
}

// The number of each field is shared by kinds that use it for the same thing, so
// the tables below are per kind.
func (o *Op) decodeBody(s string) error {
	for s != "" {
		f, rest, err := nextField(s)
		if err != nil {
			return err
		}
		s = rest
		if o.Kind == OpAcquire {
			err = o.acquireField(&f)
		} else {
			err = o.otherField(&f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *Op) acquireField(f *field[string]) error {
	switch f.tag {
	case 1<<3 | wireBytes:
		if len(o.Claims) > interlock.MaxClaims {
			return nil // one too many is enough to be refused
		}
		return decodeClaim(&o.Claims, f.s)
	case 2<<3 | wireBytes:
		return text(&o.Flow, f.s)
	case 3<<3 | wireBytes:
		return text(&o.Purpose, f.s)
	case 4<<3 | wireBytes:
		return text(&o.Trace, f.s)
	case 5<<3 | wireVarint:
		o.TTL = time.Duration(f.v)
	case 6<<3 | wireVarint:
		o.Grace = time.Duration(f.v)
	case 7<<3 | wireVarint:
		o.MaxHold = time.Duration(f.v)
	case 8<<3 | wireVarint:
		o.Priority = unzigzag(f.v)
	case 9<<3 | wireVarint:
		o.OnConflict = interlock.OnConflict(min(f.v, 255))
	}
	return nil
}

func (o *Op) otherField(f *field[string]) error {
	switch f.tag {
	case 1<<3 | wireBytes:
		switch o.Kind {
		case OpAttach, OpPoll, OpLeave, OpGetLease, OpRenew, OpRelease:
			return id(&o.ID, f.s)
		case OpOpen:
			return text(&o.RequestID, f.s)
		case OpHeartbeat:
			return text(&o.Progress, f.s)
		case OpCheckFence:
			return text(&o.Key, f.s)
		}
	case 2<<3 | wireBytes:
		switch o.Kind {
		case OpOpen:
			return text(&o.Agent, f.s)
		case OpRenew:
			return text(&o.Progress, f.s)
		case OpRelease:
			return text(&o.Outcome, f.s)
		}
	case 2<<3 | wireVarint:
		if o.Kind == OpCheckFence {
			o.Fence = interlock.Fence(f.v)
		}
	case 3<<3 | wireBytes:
		if o.Kind == OpRelease {
			return text(&o.Note, f.s)
		}
	case 3<<3 | wireVarint:
		if o.Kind == OpOpen {
			o.TTL = time.Duration(f.v)
		}
	}
	return nil
}

func decodeClaim(into *[]interlock.Claim, s string) error {
	var c interlock.Claim
	for s != "" {
		f, rest, err := nextField(s)
		if err != nil {
			return err
		}
		s = rest
		switch f.tag {
		case 1<<3 | wireBytes:
			if err := text(&c.Key, f.s); err != nil {
				return err
			}
		case 2<<3 | wireVarint:
			c.Mode = interlock.Mode(min(f.v, 255))
		}
	}
	*into = append(*into, c)
	return nil
}
