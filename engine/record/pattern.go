package record

import "github.com/interlockdev/interlock"

// Pattern returns the pattern that a PatternSet registered.
func (ev *Event) Pattern() (interlock.Pattern, error) { return DecodePattern(ev.Blob) }

// AppendPattern appends a pattern to b.
func AppendPattern(b []byte, p *interlock.Pattern) []byte { return appendPattern(b, p) }

// DecodePattern reads what AppendPattern wrote.
func DecodePattern(b []byte) (p interlock.Pattern, err error) {
	err = readPattern(b, &p)
	return p, err
}
