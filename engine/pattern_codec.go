package engine

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/interlockdev/interlock"
)

// A pattern and a namespace's settings are kept in events as a list of fields, each its number
// and its value as a uvarint or as text. Zero fields are left out. Numbers are never changed or
// reused; an older binary that meets an unknown one reports that the journal is newer than
// itself.

var errPolicy = errors.New("engine: a pattern or settings in the journal cannot be read")

type fields struct{ b []byte }

func (f *fields) number(id, v uint64) {
	if v != 0 {
		f.b = binary.AppendUvarint(binary.AppendUvarint(f.b, id<<1), v)
	}
}

func (f *fields) text(id uint64, s string) {
	f.b = appendText(binary.AppendUvarint(f.b, id<<1|1), s)
}

func (f *fields) flag(id uint64, v bool) {
	if v {
		f.number(id, 1)
	}
}

// eachField calls visit with the number of each field and its value, which is a
// number or a text. visit returns false for a field that it does not know.
func eachField(b []byte, visit func(id, number uint64, text string) bool) error {
	d := decoder{b: b}
	for len(d.b) > 0 {
		var number uint64
		var text string
		id := d.number()
		if id&1 == 0 {
			number = d.number()
		} else {
			text = d.text()
		}
		if d.failed {
			return errPolicy
		}
		if !visit(id>>1, number, text) {
			return ErrNewer
		}
	}
	return nil
}

// Pattern returns what an EvPattern registered.
func (ev *Event) Pattern() (interlock.Pattern, error) { return decodePattern(ev.Blob) }

// Settings returns what an EvConfigured set.
func (ev *Event) Settings() (interlock.Settings, error) {
	s, rule, err := decodeSettings(ev.Blob)
	s.Closed = rule != openKeys
	return s, err
}

func appendPattern(b []byte, p *interlock.Pattern) []byte {
	f := fields{b}
	f.text(1, p.Name)
	f.text(2, p.Shape)
	for _, s := range p.Aliases {
		f.text(3, s)
	}
	for _, s := range p.Members {
		f.text(4, s)
	}
	f.number(5, uint64(p.Capacity))
	f.number(6, uint64(p.Rate))
	f.number(7, uint64(p.Per))
	f.number(8, uint64(p.Burst))
	for _, g := range p.Groups { // a name, then the numbers that belong to it
		f.text(9, g.Name)
		f.number(10, uint64(g.Min))
		f.number(11, uint64(g.Max))
	}
	f.number(12, uint64(p.TTL))
	f.number(13, uint64(p.MaxTTL))
	f.number(14, uint64(p.Grace))
	f.number(15, uint64(p.MaxGrace))
	f.number(16, uint64(p.MaxHold))
	f.number(17, uint64(p.Stall))
	f.number(18, uint64(p.LockDelay))
	f.number(19, uint64(p.MaxWait))
	f.number(20, uint64(p.MaxWaiters))
	for _, r := range p.Allow { // a principal, then its modes
		f.text(21, r.Principal)
		for _, m := range r.Modes {
			f.number(22, uint64(m))
		}
	}
	f.number(23, uint64(p.Preempt))
	f.number(24, uint64(p.Park))
	f.number(25, uint64(p.MaxPark))
	f.number(26, uint64(p.OnDeadlock))
	f.number(27, uint64(p.Write))
	if p.Writer != "" {
		f.text(28, p.Writer)
	}
	if p.WriterQueue != "" {
		f.text(29, p.WriterQueue)
	}
	f.flag(30, p.AuditRefusals)
	return f.b
}

func decodePattern(b []byte) (p interlock.Pattern, err error) {
	failed := false
	err = eachField(b, func(id, n uint64, s string) bool {
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
		err = errPolicy
	}
	return p, err
}

// keyRule is what settings say of keys that match no pattern.
type keyRule uint8

const (
	unsetKeys   keyRule = iota // nothing was ever set: they are open
	openKeys                   // field 2
	closedKeys                 // field 5
	impliedKeys                // neither: settings of a version in which the first pattern closed the namespace
)

// ruleFor returns the rule of settings that were set in this version.
func ruleFor(s *interlock.Settings) keyRule {
	if s.Closed {
		return closedKeys
	}
	return openKeys
}

func appendSettings(b []byte, s *interlock.Settings, rule keyRule) []byte {
	f := fields{b}
	f.flag(1, s.StrictOrder)
	f.flag(2, rule == openKeys)
	f.flag(3, s.NearMisses)
	f.flag(5, rule == closedKeys)
	f.number(6, uint64(s.EffectRetention))
	for i, q := range []*interlock.Quota{&s.Quota, &s.PrincipalQuota} {
		for j, v := range quotaValues(q) {
			f.number(uint64(16+16*i+j), uint64(*v))
		}
	}
	if len(f.b) == len(b) {
		f.number(4, 1) // an event's blob is not empty
	}
	return f.b
}

func decodeSettings(b []byte) (s interlock.Settings, rule keyRule, err error) {
	rule = impliedKeys
	err = eachField(b, func(id, n uint64, _ string) bool {
		switch {
		case id == 1:
			s.StrictOrder = true
		case id == 2:
			rule = openKeys
		case id == 3:
			s.NearMisses = true
		case id == 4:
		case id == 5:
			s.Closed, rule = true, closedKeys
		case id == 6:
			s.EffectRetention = time.Duration(n)
		case id >= 16 && id < 24:
			*quotaValues(&s.Quota)[id-16] = int(n)
		case id >= 32 && id < 40:
			*quotaValues(&s.PrincipalQuota)[id-32] = int(n)
		default:
			return false
		}
		return true
	})
	return s, rule, err
}

// quotaValues lists a quota's numbers in the order of their fields.
func quotaValues(q *interlock.Quota) [8]*int {
	return [8]*int{&q.Keys, &q.Leases, &q.Waiters, &q.Sessions, &q.Requests, &q.Bytes, &q.Documents, &q.State}
}
