package proto

import (
	"github.com/interlockdev/interlock"
)

func appendPacket(b []byte, num byte, p *interlock.Packet) []byte {
	b = openMessage(b, num)
	start := len(b)
	for i := range p.Changes {
		c := &p.Changes[i]
		b = openMessage(b, 1)
		inner := len(b)
		b = appendDocument(b, 1, &c.Then)
		b = appendBool(b, 2, c.Known)
		b = appendDocument(b, 3, &c.Now)
		b = appendUint(b, 4, uint64(uint32(c.Writes)))
		b = appendDifference(b, 5, &c.Diff)
		for k := range c.Between {
			b = appendDocument(b, 6, &c.Between[k])
		}
		b = appendUint(b, 7, uint64(uint32(c.Left)))
		b = closeMessage(b, inner)
	}
	b = appendBool(b, 2, p.More)
	b = appendString(b, 3, p.Message)
	return closeMessage(b, start)
}

func appendDifference(b []byte, num byte, d *interlock.Difference) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendUint(b, 1, uint64(d.Kind))
	b = appendString(b, 2, d.Text)
	b = appendBool(b, 3, d.Cut)
	return closeMessage(b, start)
}

func decodePacket(p *interlock.Packet, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return decodeChange(grow(&p.Changes), f.s)
		case 2<<3 | wireVarint:
			p.More = f.v != 0
		case 3<<3 | wireBytes:
			return text(&p.Message, f.s)
		}
		return nil
	})
}

func decodeChange(c *interlock.Change, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return decodeDocument(&c.Then, f.s)
		case 2<<3 | wireVarint:
			c.Known = f.v != 0
		case 3<<3 | wireBytes:
			return decodeDocument(&c.Now, f.s)
		case 4<<3 | wireVarint:
			c.Writes = int(uint32(f.v))
		case 5<<3 | wireBytes:
			return decodeDifference(&c.Diff, f.s)
		case 6<<3 | wireBytes:
			return decodeDocument(grow(&c.Between), f.s)
		case 7<<3 | wireVarint:
			c.Left = int(uint32(f.v))
		}
		return nil
	})
}

func decodeDifference(d *interlock.Difference, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireVarint:
			d.Kind = enum[interlock.DifferenceKind](f.v)
		case 2<<3 | wireBytes:
			return text(&d.Text, f.s)
		case 3<<3 | wireVarint:
			d.Cut = f.v != 0
		}
		return nil
	})
}

// Contention is how commits and leases fare at the keys of a pattern, and which of
// the two would fare better; nil when there is nothing to say.
type Contention struct {
	interlock.Contention
	Advice *interlock.Advice
}

func (c *Contention) appendTo(b []byte, num byte) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, c.Pattern)
	b = appendUint(b, 2, c.Commits)
	b = appendUint(b, 3, c.Conflicts)
	b = appendUint(b, 4, c.Retries)
	b = appendUint(b, 5, c.Leased)
	b = appendUint(b, 6, c.Leases)
	b = appendUint(b, 7, c.Waited)
	if c.Advice != nil {
		b = appendAdvice(b, 8, c.Advice)
	}
	b = appendUint(b, 9, uint64(c.Write))
	return closeMessage(b, start)
}

func (c *Contention) decode(s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&c.Pattern, f.s)
		case 2<<3 | wireVarint:
			c.Commits = f.v
		case 3<<3 | wireVarint:
			c.Conflicts = f.v
		case 4<<3 | wireVarint:
			c.Retries = f.v
		case 5<<3 | wireVarint:
			c.Leased = f.v
		case 6<<3 | wireVarint:
			c.Leases = f.v
		case 7<<3 | wireVarint:
			c.Waited = f.v
		case 8<<3 | wireBytes:
			c.Advice = &interlock.Advice{}
			return decodeAdvice(c.Advice, f.s)
		case 9<<3 | wireVarint:
			c.Write = enum[interlock.WritePolicy](f.v)
		}
		return nil
	})
}
