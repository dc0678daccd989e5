package keypath

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/invisible"
)

// Parse returns s as a key, or an *interlock.Error with CodeInvalidKey. The rules are those of
// engine.ParseKey.
func Parse(s string) (interlock.Key, error) {
	if problem := Problem(s); problem != "" {
		return "", &interlock.Error{
			Code:    interlock.CodeInvalidKey,
			Message: fmt.Sprintf("key %q %s", Clip(s, 64), problem),
			Key:     interlock.Key(Clip(s, 64)),
		}
	}
	return interlock.Key(s), nil
}

// Problem returns what is wrong with a key, in words that follow its name, or "" if it is
// valid.
func Problem(s string) string {
	if s == "" {
		return "is empty: name what is protected, such as account:12345"
	}
	if len(s) > interlock.MaxKeyBytes {
		return fmt.Sprintf("has %d bytes: a key has at most %d", len(s), interlock.MaxKeyBytes)
	}
	ascii, segments, start := true, 1, 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) {
			switch b := s[i]; {
			case b > '/' && b < 0x7f: // most are
				continue
			case b >= utf8.RuneSelf:
				ascii = false
				continue
			case b < ' ' || b == 0x7f:
				return fmt.Sprintf("has a control character at byte %d: remove it", i)
			case b != '/':
				continue
			}
		}
		switch s[start:i] {
		case "":
			return "has an empty segment: write single slashes, none at the start or end"
		case ".", "..":
			return "has a segment . or ..: write the path without them"
		}
		if s[start] == ' ' || s[i-1] == ' ' {
			return "has a segment that begins or ends with a space: remove it"
		}
		if i < len(s) {
			segments++
			start = i + 1
		}
	}
	if segments > interlock.MaxKeySegments {
		return fmt.Sprintf("has %d segments: a key has at most %d", segments, interlock.MaxKeySegments)
	}
	if ascii {
		return ""
	}
	if !utf8.ValidString(s) {
		return "is not valid UTF-8"
	}
	for i, r := range s {
		if invisible.Is(r) || r == invisible.EmojiStyle || r != ' ' && unicode.Is(unicode.Zs, r) {
			return fmt.Sprintf("has the invisible character U+%04X at byte %d: remove it", r, i)
		}
	}
	if !norm.NFC.IsNormalString(s) {
		return "is not in Unicode normal form C: normalise it, so that one entity has one spelling"
	}
	return ""
}

// Clip returns at most n bytes of text for an error message. It cuts at a rune's boundary and marks
// the cut by three dots.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// Parent returns the key one segment shorter; ok is false for a key of one segment.
func Parent(key string) (parent string, ok bool) {
	i := strings.LastIndexByte(key, '/')
	if i < 0 {
		return "", false
	}
	return key[:i], true
}

// IsBelow reports whether key lies strictly below ancestor.
func IsBelow(key, ancestor string) bool {
	return len(key) > len(ancestor) && key[len(ancestor)] == '/' && key[:len(ancestor)] == ancestor
}

// Compare returns the order of two keys as paths, segment by segment: a key comes before
// what lies below it, and all of that before the next key beside it.
func Compare(a, b interlock.Key) int {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == b[i]:
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		default:
			return cmp.Compare(a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b))
}

// Class returns the class of keys that a key belongs to, for statistics of many keys: its first
// segment up to and including the first ':', or the first segment of a longer path, or "" for a
// plain word.
func Class(key string) string {
	for i := range len(key) {
		switch key[i] {
		case ':':
			return key[:i+1]
		case '/':
			return key[:i]
		}
	}
	return ""
}
