package proto

import (
	"math"
	"time"

	"github.com/interlockdev/interlock"
)

// Patterns and settings go both ways: an operator sets them, and asks for them.

// PatternSize is an upper bound of a pattern's encoded length.
func PatternSize(p *interlock.Pattern) int {
	n := 272 + len(p.Name) + len(p.Shape) + len(p.Writer) + len(p.WriterQueue)
	for _, list := range [...][]string{p.Aliases, p.Members} {
		for _, s := range list {
			n += 8 + len(s)
		}
	}
	for i := range p.Groups {
		n += 24 + len(p.Groups[i].Name)
	}
	for i := range p.Allow {
		n += 16 + len(p.Allow[i].Principal) + 2*len(p.Allow[i].Modes)
	}
	return n
}

func appendPattern(b []byte, num byte, p *interlock.Pattern) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, p.Name)
	b = appendString(b, 2, p.Shape)
	b = appendTexts(b, 3, p.Aliases)
	b = appendTexts(b, 4, p.Members)
	b = appendUint(b, 5, uint64(p.Capacity))
	b = appendUint(b, 6, uint64(p.Rate))
	b = appendDuration(b, 7, p.Per)
	b = appendUint(b, 8, uint64(p.Burst))
	for i := range p.Groups {
		g := &p.Groups[i]
		b = openMessage(b, 9)
		start := len(b)
		b = appendString(b, 1, g.Name)
		b = appendUint(b, 2, uint64(g.Min))
		b = appendUint(b, 3, uint64(g.Max))
		b = closeMessage(b, start)
	}
	b = appendDuration(b, 10, p.TTL)
	b = appendDuration(b, 11, p.MaxTTL)
	b = appendDuration(b, 12, p.Grace)
	b = appendDuration(b, 13, p.MaxGrace)
	b = appendDuration(b, 14, p.MaxHold)
	b = appendDuration(b, 15, p.Stall)
	b = appendDuration(b, 16, p.LockDelay)
	b = appendDuration(b, 17, p.MaxWait)
	b = appendInt(b, 18, p.MaxWaiters)
	for i := range p.Allow {
		r := &p.Allow[i]
		b = openMessage(b, 19)
		start := len(b)
		b = appendString(b, 1, r.Principal)
		if len(r.Modes) > 0 {
			b = openMessage(b, 2)
			packed := len(b)
			for _, mode := range r.Modes {
				b = appendVarint(b, uint64(mode))
			}
			b = closeMessage(b, packed)
		}
		b = closeMessage(b, start)
	}
	b = appendUint(b, 20, uint64(p.Preempt))
	b = appendUint(b, 21, uint64(p.Park))
	b = appendDuration(b, 22, p.MaxPark)
	b = appendUint(b, 23, uint64(p.OnDeadlock))
	b = appendUint(b, 24, uint64(p.Write))
	b = appendString(b, 25, p.Writer)
	b = appendString(b, 26, p.WriterQueue)
	b = appendBool(b, 27, p.AuditRefusals)
	return closeMessage(b, start)
}

func decodePattern(p *interlock.Pattern, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&p.Name, f.s)
		case 2<<3 | wireBytes:
			return text(&p.Shape, f.s)
		case 3<<3 | wireBytes:
			return texts(&p.Aliases, f.s)
		case 4<<3 | wireBytes:
			return texts(&p.Members, f.s)
		case 5<<3 | wireVarint:
			p.Capacity = count(f.v)
		case 6<<3 | wireVarint:
			p.Rate = count(f.v)
		case 7<<3 | wireVarint:
			p.Per = time.Duration(f.v)
		case 8<<3 | wireVarint:
			p.Burst = count(f.v)
		case 9<<3 | wireBytes:
			if len(p.Groups) > MaxListed {
				return nil
			}
			return decodeGroup(grow(&p.Groups), f.s)
		case 10<<3 | wireVarint:
			p.TTL = time.Duration(f.v)
		case 11<<3 | wireVarint:
			p.MaxTTL = time.Duration(f.v)
		case 12<<3 | wireVarint:
			p.Grace = time.Duration(f.v)
		case 13<<3 | wireVarint:
			p.MaxGrace = time.Duration(f.v)
		case 14<<3 | wireVarint:
			p.MaxHold = time.Duration(f.v)
		case 15<<3 | wireVarint:
			p.Stall = time.Duration(f.v)
		case 16<<3 | wireVarint:
			p.LockDelay = time.Duration(f.v)
		case 17<<3 | wireVarint:
			p.MaxWait = time.Duration(f.v)
		case 18<<3 | wireVarint:
			p.MaxWaiters = int(f.v)
		case 19<<3 | wireBytes:
			if len(p.Allow) > MaxListed {
				return nil
			}
			return decodeRule(grow(&p.Allow), f.s)
		case 20<<3 | wireVarint:
			p.Preempt = enum[interlock.PreemptPolicy](f.v)
		case 21<<3 | wireVarint:
			p.Park = enum[interlock.ParkPolicy](f.v)
		case 22<<3 | wireVarint:
			p.MaxPark = time.Duration(f.v)
		case 23<<3 | wireVarint:
			p.OnDeadlock = enum[interlock.DeadlockPolicy](f.v)
		case 24<<3 | wireVarint:
			p.Write = enum[interlock.WritePolicy](f.v)
		case 25<<3 | wireBytes:
			return text(&p.Writer, f.s)
		case 26<<3 | wireBytes:
			return text(&p.WriterQueue, f.s)
		case 27<<3 | wireVarint:
			p.AuditRefusals = f.v != 0
		}
		return nil
	})
}

func decodeGroup(g *interlock.Group, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&g.Name, f.s)
		case 2<<3 | wireVarint:
			g.Min = count(f.v)
		case 3<<3 | wireVarint:
			g.Max = count(f.v)
		}
		return nil
	})
}

func decodeRule(r *interlock.Rule, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&r.Principal, f.s)
		case 2<<3 | wireBytes:
			for packed := f.s; packed != "" && len(r.Modes) <= MaxListed; {
				v, rest, err := varint(packed)
				if err != nil {
					return err
				}
				packed = rest
				r.Modes = append(r.Modes, enum[interlock.Mode](v))
			}
		case 2<<3 | wireVarint:
			if len(r.Modes) <= MaxListed {
				r.Modes = append(r.Modes, enum[interlock.Mode](f.v))
			}
		}
		return nil
	})
}

func appendSettings(b []byte, num byte, s *interlock.Settings) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendBool(b, 1, s.StrictOrder)
	b = appendBool(b, 3, s.NearMisses)
	b = appendQuota(b, 4, &s.Quota)
	b = appendQuota(b, 5, &s.PrincipalQuota)
	b = appendBool(b, 6, s.Closed)
	b = appendDuration(b, 7, s.EffectRetention)
	return closeMessage(b, start)
}

func appendQuota(b []byte, num byte, q *interlock.Quota) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendInt(b, 1, q.Keys)
	b = appendInt(b, 2, q.Leases)
	b = appendInt(b, 3, q.Waiters)
	b = appendInt(b, 4, q.Sessions)
	b = appendInt(b, 5, q.Requests)
	b = appendInt(b, 6, q.Bytes)
	b = appendInt(b, 7, q.Documents)
	b = appendInt(b, 8, q.State)
	return closeMessage(b, start)
}

func decodeSettings(x *interlock.Settings, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireVarint:
			x.StrictOrder = f.v != 0
		case 3<<3 | wireVarint:
			x.NearMisses = f.v != 0
		case 4<<3 | wireBytes:
			return decodeQuota(&x.Quota, f.s)
		case 5<<3 | wireBytes:
			return decodeQuota(&x.PrincipalQuota, f.s)
		case 6<<3 | wireVarint:
			x.Closed = f.v != 0
		case 7<<3 | wireVarint:
			x.EffectRetention = time.Duration(f.v)
		}
		return nil
	})
}

func decodeQuota(q *interlock.Quota, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireVarint:
			q.Keys = int(f.v)
		case 2<<3 | wireVarint:
			q.Leases = int(f.v)
		case 3<<3 | wireVarint:
			q.Waiters = int(f.v)
		case 4<<3 | wireVarint:
			q.Sessions = int(f.v)
		case 5<<3 | wireVarint:
			q.Requests = int(f.v)
		case 6<<3 | wireVarint:
			q.Bytes = int(f.v)
		case 7<<3 | wireVarint:
			q.Documents = int(f.v)
		case 8<<3 | wireVarint:
			q.State = int(f.v)
		}
		return nil
	})
}

// count reads a number of things; what is above 32 bits is refused as too many.
func count(v uint64) uint32 { return uint32(min(v, math.MaxUint32)) }

// enum reads a number that stands for a name. One that is too large for any stays
// one that stands for none.
func enum[T ~uint8](v uint64) T { return T(min(v, math.MaxUint8)) }

func appendInt(b []byte, num byte, v int) []byte { return appendUint(b, num, uint64(v)) }
