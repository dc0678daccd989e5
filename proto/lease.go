package proto

import (
	"time"

	"github.com/interlockdev/interlock"
)

func appendLease(b []byte, l *interlock.Lease) []byte {
	b = appendID(b, 1, (*[16]byte)(&l.ID))
	b = appendUint(b, 2, uint64(l.Fence))
	b = appendClaims(b, 3, l.Claims)
	b = appendString(b, 4, l.Agent)
	b = appendString(b, 5, l.Session)
	b = appendString(b, 6, l.Flow)
	b = appendString(b, 7, l.Purpose)
	b = appendDuration(b, 8, l.TTL)
	b = appendDuration(b, 9, l.Grace)
	b = appendDuration(b, 10, l.ExpiresIn)
	b = appendDuration(b, 11, l.MaxHoldIn)
	b = appendUint(b, 12, uint64(l.State))
	b = appendBool(b, 13, l.Reused)
	b = appendBool(b, 14, l.Changed)
	for i := range l.Notes {
		n := &l.Notes[i]
		b = openMessage(b, 15)
		start := len(b)
		b = appendString(b, 1, n.Key)
		b = appendString(b, 2, n.Agent)
		b = appendUint(b, 3, uint64(n.Fence))
		b = appendString(b, 4, n.Outcome)
		b = appendString(b, 5, n.Text)
		b = appendDuration(b, 6, n.Age)
		b = closeMessage(b, start)
	}
	b = appendDuration(b, 16, l.StallIn)
	b = appendDuration(b, 17, l.LockDelay)
	b = appendString(b, 18, l.Group)
	b = appendString(b, 19, l.EndedBy)
	b = appendTexts(b, 20, l.Moved)
	if y := l.Yield; y != nil {
		b = appendYield(b, 21, y)
	}
	if p := l.Parking; p != nil {
		b = appendParking(b, 22, p)
	}
	b = appendUint(b, 23, l.Generation)
	for i := range l.Parts {
		p := &l.Parts[i]
		b = openMessage(b, 24)
		start := len(b)
		b = appendString(b, 1, p.Key)
		b = appendID(b, 2, (*[16]byte)(&p.Lease))
		b = appendUint(b, 3, uint64(p.Fence))
		b = appendBool(b, 4, p.Stop)
		b = appendDuration(b, 5, p.Left)
		b = closeMessage(b, start)
	}
	if d := l.Decision; d != nil {
		b = openMessage(b, 25)
		start := len(b)
		b = appendUint(b, 1, uint64(d.Verdict))
		b = appendString(b, 2, d.By)
		b = appendString(b, 3, d.Principal)
		b = appendString(b, 4, d.Reason)
		b = closeMessage(b, start)
	}
	return b
}

func decodeLease(l *interlock.Lease, s string) error {
	for s != "" {
		f, rest, err := nextField(s)
		if err != nil {
			return err
		}
		s = rest
		switch f.tag {
		case 1<<3 | wireBytes:
			err = id(&l.ID, f.s)
		case 2<<3 | wireVarint:
			l.Fence = interlock.Fence(f.v)
		case 3<<3 | wireBytes:
			err = decodeClaim(&l.Claims, f.s)
		case 4<<3 | wireBytes:
			err = text(&l.Agent, f.s)
		case 5<<3 | wireBytes:
			err = text(&l.Session, f.s)
		case 6<<3 | wireBytes:
			err = text(&l.Flow, f.s)
		case 7<<3 | wireBytes:
			err = text(&l.Purpose, f.s)
		case 8<<3 | wireVarint:
			l.TTL = time.Duration(f.v)
		case 9<<3 | wireVarint:
			l.Grace = time.Duration(f.v)
		case 10<<3 | wireVarint:
			l.ExpiresIn = time.Duration(f.v)
		case 11<<3 | wireVarint:
			l.MaxHoldIn = time.Duration(f.v)
		case 12<<3 | wireVarint:
			l.State = enum[interlock.LeaseState](f.v)
		case 13<<3 | wireVarint:
			l.Reused = f.v != 0
		case 14<<3 | wireVarint:
			l.Changed = f.v != 0
		case 15<<3 | wireBytes:
			err = decodeNote(grow(&l.Notes), f.s)
		case 16<<3 | wireVarint:
			l.StallIn = time.Duration(f.v)
		case 17<<3 | wireVarint:
			l.LockDelay = time.Duration(f.v)
		case 18<<3 | wireBytes:
			err = text(&l.Group, f.s)
		case 19<<3 | wireBytes:
			err = text(&l.EndedBy, f.s)
		case 20<<3 | wireBytes:
			err = text(grow(&l.Moved), f.s)
		case 21<<3 | wireBytes:
			l.Yield = &interlock.Yield{}
			err = decodeYield(l.Yield, f.s)
		case 22<<3 | wireBytes:
			l.Parking = &interlock.ParkStatus{}
			err = decodeParking(l.Parking, f.s)
		case 23<<3 | wireVarint:
			l.Generation = f.v
		case 24<<3 | wireBytes:
			err = decodePart(grow(&l.Parts), f.s)
		case 25<<3 | wireBytes:
			l.Decision = &interlock.Decision{}
			err = decodeDecision(l.Decision, f.s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func decodeNote(n *interlock.Note, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&n.Key, f.s)
		case 2<<3 | wireBytes:
			return text(&n.Agent, f.s)
		case 3<<3 | wireVarint:
			n.Fence = interlock.Fence(f.v)
		case 4<<3 | wireBytes:
			return text(&n.Outcome, f.s)
		case 5<<3 | wireBytes:
			return text(&n.Text, f.s)
		case 6<<3 | wireVarint:
			n.Age = time.Duration(f.v)
		}
		return nil
	})
}

func appendYield(b []byte, num byte, y *interlock.Yield) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, y.Agent)
	b = appendString(b, 2, y.Session)
	b = appendString(b, 3, y.Flow)
	b = appendString(b, 4, y.Purpose)
	b = appendSint(b, 5, int32(y.Priority))
	b = appendDuration(b, 6, y.Since)
	b = appendBool(b, 7, y.Revoked)
	return closeMessage(b, start)
}

func decodeYield(y *interlock.Yield, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&y.Agent, f.s)
		case 2<<3 | wireBytes:
			return text(&y.Session, f.s)
		case 3<<3 | wireBytes:
			return text(&y.Flow, f.s)
		case 4<<3 | wireBytes:
			return text(&y.Purpose, f.s)
		case 5<<3 | wireVarint:
			y.Priority = int(unzigzag(f.v))
		case 6<<3 | wireVarint:
			y.Since = time.Duration(f.v)
		case 7<<3 | wireVarint:
			y.Revoked = f.v != 0
		}
		return nil
	})
}

func appendParking(b []byte, num byte, p *interlock.ParkStatus) []byte {
	b = openMessage(b, num)
	start := len(b)
	b = appendString(b, 1, p.Reason)
	b = appendDuration(b, 2, p.Since)
	b = appendDuration(b, 3, p.Left)
	b = appendBool(b, 4, p.Freed)
	return closeMessage(b, start)
}

func decodeParking(p *interlock.ParkStatus, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&p.Reason, f.s)
		case 2<<3 | wireVarint:
			p.Since = time.Duration(f.v)
		case 3<<3 | wireVarint:
			p.Left = time.Duration(f.v)
		case 4<<3 | wireVarint:
			p.Freed = f.v != 0
		}
		return nil
	})
}

func decodeDecision(d *interlock.Decision, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireVarint:
			d.Verdict = enum[interlock.Verdict](f.v)
		case 2<<3 | wireBytes:
			return text(&d.By, f.s)
		case 3<<3 | wireBytes:
			return text(&d.Principal, f.s)
		case 4<<3 | wireBytes:
			return text(&d.Reason, f.s)
		}
		return nil
	})
}

func decodePart(p *interlock.Part, s string) error {
	return eachField(s, func(f field[string]) error {
		switch f.tag {
		case 1<<3 | wireBytes:
			return text(&p.Key, f.s)
		case 2<<3 | wireBytes:
			return id(&p.Lease, f.s)
		case 3<<3 | wireVarint:
			p.Fence = interlock.Fence(f.v)
		case 4<<3 | wireVarint:
			p.Stop = f.v != 0
		case 5<<3 | wireVarint:
			p.Left = time.Duration(f.v)
		}
		return nil
	})
}
