package proto

import (
	"time"

	"github.com/interlockdev/interlock"
)

// eachField calls visit for the fields of a message, in their order. They are values, because
// taking the address of one for a function that is a value costs an allocation.
func eachField(s string, visit func(field[string]) error) error {
	for s != "" {
		f, rest, err := nextField(s)
		if err != nil {
			return err
		}
		s = rest
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// countFields counts the fields with a tag, as far as the message can be read.
func countFields(s string, tag uint64) (n int) {
	for s != "" {
		f, rest, err := nextField(s)
		if err != nil {
			break
		}
		if f.tag == tag {
			n++
		}
		s = rest
	}
	return n
}

// grow appends a zero T and returns it to be filled in.
func grow[T any](list *[]T) *T {
	var zero T
	*list = append(*list, zero)
	return &(*list)[len(*list)-1]
}

func (r *Reply) decode(s string) error {
	for s != "" {
		f, rest, err := nextField(s)
		if err != nil {
			return err
		}
		s = rest
		switch f.tag {
		case 1<<3 | wireVarint:
			r.Slot = uint32(f.v)
		case 2<<3 | wireVarint:
			r.Seq = f.v
		case 3<<3 | wireVarint:
			r.Outcome = enum[Outcome](f.v)
		case 4<<3 | wireVarint:
			r.Index = interlock.Index(f.v)
		case 5<<3 | wireBytes:
			err = decodeLease(&r.Lease, f.s)
		case 6<<3 | wireBytes:
			r.Ticket = &interlock.Ticket{}
			err = decodeTicket(r.Ticket, f.s)
		case 7<<3 | wireBytes:
			r.Session = &Session{}
			err = r.Session.decode(f.s)
		case 8<<3 | wireBytes:
			err = grow(&r.Losses).decode(f.s)
		case 9<<3 | wireBytes:
			err = text(&r.Code, f.s)
		case 10<<3 | wireBytes:
			err = text(&r.Message, f.s)
		case 11<<3 | wireBytes:
			r.Conflict = &Conflict{}
			err = r.Conflict.decode(f.s)
		case 12<<3 | wireBytes:
			r.Advice = &interlock.Advice{}
			err = decodeAdvice(r.Advice, f.s)
		case 13<<3 | wireBytes:
			err = text(grow(&r.Warnings), f.s)
		case 14<<3 | wireBytes:
			err = text(&r.EndedBy, f.s)
		case 15<<3 | wireBytes:
			err = decodePattern(grow(&r.Patterns), f.s)
		case 16<<3 | wireVarint:
			r.More = f.v != 0
		case 17<<3 | wireBytes:
			r.Settings = &interlock.Settings{}
			err = decodeSettings(r.Settings, f.s)
		case 18<<3 | wireVarint:
			r.Version = interlock.Version(f.v)
		case 19<<3 | wireBytes:
			err = decodeDocument(grow(&r.Documents), f.s)
		case 20<<3 | wireBytes:
			r.Packet = &interlock.Packet{}
			err = decodePacket(r.Packet, f.s)
		case 21<<3 | wireBytes:
			err = decodeEffect(grow(&r.Effects), f.s)
		case 22<<3 | wireBytes:
			err = grow(&r.Contention).decode(f.s)
		case 23<<3 | wireBytes:
			err = decodeTask(grow(&r.Tasks), f.s)
		case 24<<3 | wireBytes:
			if r.Handed == nil {
				r.Handed = make([]Assignment, 0, 1+countFields(s, f.tag))
			}
			err = grow(&r.Handed).decode(f.s)
		case 25<<3 | wireBytes:
			err = decodeQueueStatus(grow(&r.Queues), f.s)
		case 26<<3 | wireBytes:
			err = decodeLogEntry(grow(&r.Log), f.s)
		case 27<<3 | wireVarint:
			r.Next = f.v
		case 28<<3 | wireVarint:
			r.AsAsked = f.v != 0
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func decodeTicket(t *interlock.Ticket, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return id(&t.ID, f.s)
		case 2<<3 | wireVarint:
			t.Position = int(uint32(f.v))
		case 3<<3 | wireVarint:
			t.Length = int(uint32(f.v))
		case 4<<3 | wireVarint:
			t.ETA = time.Duration(f.v)
		}
		return nil
	})
}

func (x *Session) decode(s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return id(&x.ID, f.s)
		case 2<<3 | wireBytes:
			return text(&x.Name, f.s)
		case 3<<3 | wireBytes:
			return text(&x.Agent, f.s)
		case 4<<3 | wireVarint:
			x.TTL = time.Duration(f.v)
		case 5<<3 | wireVarint:
			x.ExpiresIn = time.Duration(f.v)
		}
		return nil
	})
}

func (x *Loss) decode(s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return decodeLease(&x.Lease, f.s)
		case 2<<3 | wireBytes:
			return text(&x.Code, f.s)
		case 3<<3 | wireBytes:
			return text(&x.Message, f.s)
		}
		return nil
	})
}

func (c *Conflict) decode(s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&c.Key, f.s)
		case 2<<3 | wireBytes:
			return text(&c.Kind, f.s)
		case 3<<3 | wireBytes:
			return decodeHolder(grow(&c.Holders), f.s)
		case 4<<3 | wireVarint:
			c.More = int(uint32(f.v))
		case 5<<3 | wireVarint:
			c.Queue.Length = int(uint32(f.v))
		case 6<<3 | wireVarint:
			c.Queue.ETA = time.Duration(f.v)
		case 7<<3 | wireBytes:
			return decodeStep(grow(&c.Cycle), f.s)
		case 8<<3 | wireBytes:
			c.Capacity = &interlock.Capacity{}
			return decodeCapacity(c.Capacity, f.s)
		case 9<<3 | wireBytes:
			return text(grow(&c.Nearest), f.s)
		}
		return nil
	})
}

func decodeHolder(h *interlock.Holder, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&h.Agent, f.s)
		case 2<<3 | wireBytes:
			return text(&h.Session, f.s)
		case 3<<3 | wireBytes:
			return text(&h.Flow, f.s)
		case 4<<3 | wireBytes:
			return text(&h.Purpose, f.s)
		case 5<<3 | wireBytes:
			return text(&h.Key, f.s)
		case 6<<3 | wireVarint:
			h.Mode = enum[interlock.Mode](f.v)
		case 7<<3 | wireVarint:
			h.Fence = interlock.Fence(f.v)
		case 8<<3 | wireVarint:
			h.Liveness = enum[interlock.Liveness](f.v)
		case 9<<3 | wireVarint:
			h.HeartbeatAge = time.Duration(f.v)
		case 10<<3 | wireVarint:
			h.Held = time.Duration(f.v)
		case 11<<3 | wireVarint:
			h.ExpiresIn = time.Duration(f.v)
		case 12<<3 | wireBytes:
			return text(&h.Progress, f.s)
		case 13<<3 | wireVarint:
			h.Count = count(f.v)
		case 14<<3 | wireBytes:
			h.Parking = &interlock.ParkStatus{}
			return decodeParking(h.Parking, f.s)
		case 15<<3 | wireBytes:
			return text(&h.EndedBy, f.s)
		case 16<<3 | wireBytes:
			h.Yield = &interlock.Yield{}
			return decodeYield(h.Yield, f.s)
		}
		return nil
	})
}

func decodeCapacity(c *interlock.Capacity, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireVarint:
			c.Permits = count(f.v)
		case 2<<3 | wireVarint:
			c.Used = count(f.v)
		case 3<<3 | wireVarint:
			c.Tokens = count(f.v)
		case 4<<3 | wireVarint:
			c.Available = count(f.v)
		case 5<<3 | wireVarint:
			c.Refill = time.Duration(f.v)
		case 6<<3 | wireBytes:
			return decodeGroupUse(grow(&c.Groups), f.s)
		}
		return nil
	})
}

func decodeGroupUse(g *interlock.GroupUse, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&g.Name, f.s)
		case 2<<3 | wireVarint:
			g.Min = count(f.v)
		case 3<<3 | wireVarint:
			g.Max = count(f.v)
		case 4<<3 | wireVarint:
			g.Used = count(f.v)
		}
		return nil
	})
}

func decodeStep(c *interlock.CycleStep, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&c.Agent, f.s)
		case 2<<3 | wireBytes:
			return text(&c.Session, f.s)
		case 3<<3 | wireBytes:
			return text(&c.Flow, f.s)
		case 4<<3 | wireBytes:
			return text(&c.Key, f.s)
		case 5<<3 | wireVarint:
			c.Mode = enum[interlock.Mode](f.v)
		case 6<<3 | wireVarint:
			c.Victim = f.v != 0
		case 7<<3 | wireVarint:
			c.Next = enum[interlock.BlockerRole](f.v)
		}
		return nil
	})
}

func decodeAdvice(a *interlock.Advice, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&a.Action, f.s)
		case 2<<3 | wireVarint:
			a.RetryAfter = time.Duration(f.v)
		case 3<<3 | wireBytes:
			return text(&a.Message, f.s)
		}
		return nil
	})
}
