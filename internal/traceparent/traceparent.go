package traceparent

import "strings"

// Context is what a traceparent tells. Each part is in lower-case hexadecimal digits.
type Context struct {
	TraceID  string // 32 digits, not all zero
	ParentID string // of the span that the request came from: 16 digits, not all zero
	Flags    string // 2 digits
}

// size is the length of version 00. A later version may have more parts behind them.
const size = 55

// Parse reads the parts that all versions have. One that is malformed counts as none, as the specification asks: ok is
// false then.
func Parse(text string) (c Context, ok bool) {
	if len(text) < size || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return Context{}, false
	}
	version := text[:2]
	c = Context{TraceID: text[3:35], ParentID: text[36:52], Flags: text[53:size]}
	switch {
	case version == "ff", version == "00" && len(text) > size, len(text) > size && text[size] != '-':
		return Context{}, false
	case !isHex(version), !isHex(c.TraceID), !isHex(c.ParentID), !isHex(c.Flags), isZero(c.TraceID), isZero(c.ParentID):
		return Context{}, false
	}
	return c, true
}

// Clean returns the parts of a traceparent that all versions have, as one text; "" if it is malformed.
func Clean(text string) string {
	if _, ok := Parse(text); !ok {
		return ""
	}
	return text[:size]
}

// Sampled reports whether the caller keeps the trace.
func (c Context) Sampled() bool { return c.Flags != "" && strings.Contains("13579bdf", c.Flags[1:]) }

func isHex(digits string) bool { return strings.Trim(digits, "0123456789abcdef") == "" }

func isZero(digits string) bool { return strings.Trim(digits, "0") == "" }
