package proxy

import (
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"
)

// splitPath takes an escaped path apart and decodes each segment, once. The proxy
// matches rules by these segments and sends exactly them on, encoded anew, so the
// API cannot see another path than the rules did.
//
// It refuses every path that some server reads in two ways: empty segments and dots,
// which are cleaned away; encoded slashes, backslashes and what would change when it
// is decoded again; path parameters after ';', which are cut off; control characters.
// A slash at the end makes an empty last segment, which only a rule with such a slash
// fits.
func splitPath(escaped string) ([]string, error) {
	rest, ok := strings.CutPrefix(escaped, "/")
	if !ok {
		return nil, errors.New("it does not begin with a slash")
	}
	segments := strings.Split(rest, "/")
	for i, s := range segments {
		decoded, err := url.PathUnescape(s)
		if err != nil {
			return nil, errors.New("it is not percent-encoded: write % as %25")
		}
		if problem := segmentProblem(decoded, i == len(segments)-1); problem != "" {
			return nil, errors.New(problem)
		}
		segments[i] = decoded
	}
	return segments, nil
}

func segmentProblem(s string, last bool) string {
	switch {
	case s == "" && !last:
		return "it contains an empty segment: use single slashes"
	case s == "." || s == "..":
		return "it contains a segment . or ..: write the path without it"
	case strings.ContainsAny(s, `/\`):
		return "it contains an encoded slash or a backslash, which servers interpret differently"
	case strings.Contains(s, ";"):
		return "it contains a semicolon: some servers ignore the rest"
	case !utf8.ValidString(s):
		return "it is not UTF-8"
	}
	for i := range len(s) {
		switch {
		case s[i] < ' ' || s[i] == 0x7f:
			return "it contains a control character"
		case s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			return "it is encoded twice"
		}
	}
	return ""
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// joinPath is the way back: one spelling for each list of segments.
func joinPath(segments []string) (path, escaped string) {
	var p, e strings.Builder
	for _, s := range segments {
		p.WriteString("/" + s)
		e.WriteString("/" + url.PathEscape(s))
	}
	return p.String(), e.String()
}
