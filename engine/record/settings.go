package record

import "github.com/interlockdev/interlock"

// Settings returns the settings of a Configured.
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

// storedSettings are settings with the rule for keys that match no pattern, which is Open, Closed or
// neither.
type storedSettings struct {
	*interlock.Settings
	Open  bool `journal:"2"`
	Empty bool `journal:"4"` // nothing else is set: an event's blob is not empty
}

// AppendSettings appends settings that are set in this version to b.
func AppendSettings(b []byte, s *interlock.Settings) []byte {
	return AppendSettingsWith(b, s, RuleFor(s))
}

// AppendSettingsWith appends settings to b, with the rule for keys that match no pattern.
func AppendSettingsWith(b []byte, s *interlock.Settings, rule KeyRule) []byte {
	x := storedSettings{Settings: s, Open: rule == OpenKeys}
	x.Empty = rule != OpenKeys && *s == (interlock.Settings{})
	return appendStoredSettings(b, &x)
}

// DecodeSettings reads what AppendSettings wrote.
func DecodeSettings(b []byte) (s interlock.Settings, rule KeyRule, err error) {
	x := storedSettings{Settings: &s}
	err = readStoredSettings(b, &x)
	switch {
	case s.Closed:
		rule = ClosedKeys
	case x.Open:
		rule = OpenKeys
	default:
		rule = ImpliedKeys
	}
	return s, rule, err
}
