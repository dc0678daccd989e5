package record

import (
	"time"

	"github.com/interlockdev/interlock"
)

// Pattern returns what an PatternSet registered.
func (ev *Event) Pattern() (interlock.Pattern, error) { return DecodePattern(ev.Blob) }

// AppendPattern appends a pattern to b.
func AppendPattern(b []byte, p *interlock.Pattern) []byte {
	f := Fields{b}
	f.Text(1, p.Name)
	f.Text(2, p.Shape)
	for _, s := range p.Aliases {
		f.Text(3, s)
	}
	for _, s := range p.Members {
		f.Text(4, s)
	}
	f.Number(5, uint64(p.Capacity))
	f.Number(6, uint64(p.Rate))
	f.Number(7, uint64(p.Per))
	f.Number(8, uint64(p.Burst))
	for _, g := range p.Groups { // a name, then the numbers that belong to it
		f.Text(9, g.Name)
		f.Number(10, uint64(g.Min))
		f.Number(11, uint64(g.Max))
	}
	f.Number(12, uint64(p.TTL))
	f.Number(13, uint64(p.MaxTTL))
	f.Number(14, uint64(p.Grace))
	f.Number(15, uint64(p.MaxGrace))
	f.Number(16, uint64(p.MaxHold))
	f.Number(17, uint64(p.Stall))
	f.Number(18, uint64(p.LockDelay))
	f.Number(19, uint64(p.MaxWait))
	f.Number(20, uint64(p.MaxWaiters))
	for _, r := range p.Allow { // a principal, then its modes
		f.Text(21, r.Principal)
		for _, m := range r.Modes {
			f.Number(22, uint64(m))
		}
	}
	f.Number(23, uint64(p.Preempt))
	f.Number(24, uint64(p.Park))
	f.Number(25, uint64(p.MaxPark))
	f.Number(26, uint64(p.OnDeadlock))
	f.Number(27, uint64(p.Write))
	if p.Writer != "" {
		f.Text(28, p.Writer)
	}
	if p.WriterQueue != "" {
		f.Text(29, p.WriterQueue)
	}
	f.Flag(30, p.AuditRefusals)
	return f.Bytes
}

// DecodePattern reads what AppendPattern wrote.
func DecodePattern(b []byte) (p interlock.Pattern, err error) {
	failed := false
	err = EachField(b, func(id, n uint64, s string) bool {
		switch id {
		case 1:
			p.Name = s
		case 2:
			p.Shape = s
		case 3:
			p.Aliases = append(p.Aliases, s)
		case 4:
			p.Members = append(p.Members, s)
		case 5:
			p.Capacity = uint32(n)
		case 6:
			p.Rate = uint32(n)
		case 7:
			p.Per = time.Duration(n)
		case 8:
			p.Burst = uint32(n)
		case 9:
			p.Groups = append(p.Groups, interlock.Group{Name: s})
		case 10, 11:
			if len(p.Groups) == 0 {
				failed = true
			} else if g := &p.Groups[len(p.Groups)-1]; id == 10 {
				g.Min = uint32(n)
			} else {
				g.Max = uint32(n)
			}
		case 12:
			p.TTL = time.Duration(n)
		case 13:
			p.MaxTTL = time.Duration(n)
		case 14:
			p.Grace = time.Duration(n)
		case 15:
			p.MaxGrace = time.Duration(n)
		case 16:
			p.MaxHold = time.Duration(n)
		case 17:
			p.Stall = time.Duration(n)
		case 18:
			p.LockDelay = time.Duration(n)
		case 19:
			p.MaxWait = time.Duration(n)
		case 20:
			p.MaxWaiters = int(n)
		case 21:
			p.Allow = append(p.Allow, interlock.Rule{Principal: s})
		case 22:
			if len(p.Allow) == 0 {
				failed = true
			} else {
				r := &p.Allow[len(p.Allow)-1]
				r.Modes = append(r.Modes, interlock.Mode(n))
			}
		case 23:
			p.Preempt = interlock.PreemptPolicy(n)
		case 24:
			p.Park = interlock.ParkPolicy(n)
		case 25:
			p.MaxPark = time.Duration(n)
		case 26:
			p.OnDeadlock = interlock.DeadlockPolicy(n)
		case 27:
			p.Write = interlock.WritePolicy(n)
		case 28:
			p.Writer = s
		case 29:
			p.WriterQueue = s
		case 30:
			p.AuditRefusals = n != 0
		default:
			return false
		}
		return true
	})
	if err == nil && failed {
		err = ErrMalformed
	}
	return p, err
}
