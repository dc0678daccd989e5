package record

import (
	"time"

	"github.com/interlockdev/interlock"
)

// Settings returns what an Configured set.
func (ev *Event) Settings() (interlock.Settings, error) {
	s, rule, err := DecodeSettings(ev.Blob)
	s.Closed = rule != OpenKeys
	return s, err
}

// KeyRule is a rule for keys that match no pattern.
type KeyRule uint8

const (
	UnsetKeys   KeyRule = iota // nothing was ever set: they are open
	OpenKeys                   // field 2
	ClosedKeys                 // field 5
	ImpliedKeys                // neither: settings of a version in which the first pattern closed the namespace
)

// RuleFor returns the rule of settings that were set in this version.
func RuleFor(s *interlock.Settings) KeyRule {
	if s.Closed {
		return ClosedKeys
	}
	return OpenKeys
}

// AppendSettings appends settings to b, with the rule for keys that match no pattern.
func AppendSettings(b []byte, s *interlock.Settings, rule KeyRule) []byte {
	f := Fields{b}
	f.Flag(1, s.StrictOrder)
	f.Flag(2, rule == OpenKeys)
	f.Flag(3, s.NearMisses)
	f.Flag(5, rule == ClosedKeys)
	f.Number(6, uint64(s.EffectRetention))
	for i, q := range []*interlock.Quota{&s.Quota, &s.PrincipalQuota} {
		for j, v := range quotaValues(q) {
			f.Number(uint64(16+16*i+j), uint64(*v))
		}
	}
	if len(f.Bytes) == len(b) {
		f.Number(4, 1) // an event's blob is not empty
	}
	return f.Bytes
}

// DecodeSettings reads what AppendSettings wrote.
func DecodeSettings(b []byte) (s interlock.Settings, rule KeyRule, err error) {
	rule = ImpliedKeys
	err = EachField(b, func(id, n uint64, _ string) bool {
		switch {
		case id == 1:
			s.StrictOrder = true
		case id == 2:
			rule = OpenKeys
		case id == 3:
			s.NearMisses = true
		case id == 4:
		case id == 5:
			s.Closed, rule = true, ClosedKeys
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
