package keypath

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/internal/invisible"
)

// Parse returns s as a key, or a *message.Error with CodeInvalidKey. The rules are those of
// engine.ParseKey.
func Parse(s string) (interlock.Key, error) {
	if problem := Problem(s); problem != nil {
		return "", &message.Error{
			Code: interlock.CodeInvalidKey,
			Text: message.New(message.InvalidKey, message.Str(Clip(s, 64)), message.Sub(problem)),
			Key:  interlock.Key(Clip(s, 64)),
		}
	}
	return interlock.Key(s), nil
}

// Problem returns the defect of a key, in words that follow its name, or "" if it is
// valid.
func Problem(s string) *message.Text {
	if s == "" {
		return message.New(message.KeyEmpty)
	}
	if len(s) > interlock.MaxKeyBytes {
		return message.New(message.KeyTooLong, message.Num(len(s)), message.Num(interlock.MaxKeyBytes))
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
				return message.New(message.KeyControlCharacter, message.Num(i))
			case b != '/':
				continue
			}
		}
		switch s[start:i] {
		case "":
			return message.New(message.KeyEmptySegment)
		case ".", "..":
			return message.New(message.KeyDotSegment)
		}
		if s[start] == ' ' || s[i-1] == ' ' {
			return message.New(message.KeySpaceAtEnd)
		}
		if i < len(s) {
			segments++
			start = i + 1
		}
	}
	if segments > interlock.MaxKeySegments {
		return message.New(message.KeyTooDeep, message.Num(segments), message.Num(interlock.MaxKeySegments))
	}
	if ascii {
		return nil
	}
	if !utf8.ValidString(s) {
		return message.New(message.KeyNotUTF8)
	}
	for i, r := range s {
		if invisible.Is(r) || r == invisible.EmojiStyle || r != ' ' && unicode.Is(unicode.Zs, r) {
			return message.New(message.KeyInvisibleCharacter, message.Num(r), message.Num(i))
		}
	}
	if !norm.NFC.IsNormalString(s) {
		return message.New(message.KeyNotNormal)
	}
	return nil
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
