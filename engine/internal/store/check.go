package store

import (
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/message"
)

// Refusal is the reason why claims are not admitted, regardless of their holders.
type Refusal struct {
	Code    interlock.Code
	Message *message.Text
	Key     interlock.Key
	Nearest []string

	Conflict *Conflict // the blockers; nil if only key and nearest are reported
}

// Text is something that a caller wrote, with its limit.
type Text struct {
	Name  string
	Value string
	Limit int
}

func CheckTexts(texts ...Text) (interlock.Code, *message.Text) {
	for i := range texts {
		t := &texts[i]
		if t.Value == "" {
			continue
		}
		if len(t.Value) > t.Limit {
			return interlock.CodeTooLong, message.New(
				message.TooLong, message.Str(t.Name), message.Num(len(t.Value)), message.Num(t.Limit),
			)
		}
		if !utf8.ValidString(t.Value) {
			return interlock.CodeInvalidRequest, message.New(message.NotUTF8, message.Str(t.Name))
		}
	}
	return "", nil
}

// CheckName returns the fault of a name that stands in a path, or "".
func CheckName(what, name string) *message.Text {
	if name == "" || len(name) > interlock.MaxNameBytes {
		return message.New(
			message.NameLength, message.Str(what), message.Str(keypath.Clip(name, 64)), message.Num(interlock.MaxNameBytes),
		)
	}
	for _, b := range []byte(name) {
		if b <= ' ' || b >= 0x7f || b == '/' {
			return message.New(message.NameCharacters, message.Str(what), message.Str(keypath.Clip(name, 64)))
		}
	}
	return nil
}
