package message

import (
	"fmt"
	"time"
)

// Text is a message: an ID and its values, in the order in which its sentence names them. It is
// never changed once it is made. A nil Text is no message.
type Text struct {
	ID   ID
	Args []Arg
}

// New returns a message.
func New(id ID, args ...Arg) *Text { return &Text{id, args} }

// Plain returns a text that was made elsewhere: by an earlier version, which journaled sentences, or
// by a layer above the engine.
func Plain(text string) *Text {
	if text == "" {
		return nil
	}
	return New(Verbatim, Str(text))
}

// Verbatim returns the text of a message that Plain made, and whether t is one. A nil Text is one
// without words.
func (t *Text) Verbatim() (text string, ok bool) {
	switch {
	case t == nil:
		return "", true
	case t.ID != Verbatim || len(t.Args) != 1 || t.Args[0].Kind != String:
		return "", false
	}
	return t.Args[0].Text, true
}

// Size returns the cost of remembering t: its texts, and the numbers.
func (t *Text) Size() (n int) {
	if t == nil {
		return 0
	}
	for i := range t.Args {
		switch a := &t.Args[i]; a.Kind {
		case String:
			n += len(a.Text)
		case Nested:
			n += a.Part.Size()
		default:
			n += numberBytes
		}
	}
	return n
}

const numberBytes = 8 // that a number costs

// Kind is the kind of a value.
type Kind uint8

// The kinds of values. Journals contain these numbers.
const (
	String   Kind = 1 // Text
	Integer  Kind = 2 // Number, which may be negative
	Unsigned Kind = 3 // Number, as 64 bits without a sign
	Duration Kind = 4 // Number, in nanoseconds
	Nested   Kind = 5 // Part, nil for nothing
)

// Arg is a value of a message.
type Arg struct {
	Kind   Kind
	Number int64
	Text   string
	Part   *Text
}

// Str is a text: a key, a name, the name of a field or of a state.
func Str[T ~string](s T) Arg { return Arg{Kind: String, Text: string(s)} }

// Num is a number.
func Num[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64](n T) Arg {
	if n > 0 && int64(n) < 0 {
		return Arg{Kind: Unsigned, Number: int64(n)}
	}
	return Arg{Kind: Integer, Number: int64(n)}
}

// Dur is a duration.
func Dur(d time.Duration) Arg { return Arg{Kind: Duration, Number: int64(d)} }

// Sub is a message inside another one.
func Sub(t *Text) Arg { return Arg{Kind: Nested, Part: t} }

// String returns the ID and the values, for errors and logs.
func (t *Text) String() string {
	if t == nil {
		return ""
	}
	b := fmt.Appendf(nil, "message %d", t.ID)
	for i := range t.Args {
		switch a := &t.Args[i]; a.Kind {
		case String:
			b = fmt.Appendf(b, " %q", a.Text)
		case Nested:
			b = fmt.Appendf(b, " (%s)", a.Part)
		default:
			b = fmt.Appendf(b, " %d", a.Number)
		}
	}
	return string(b)
}
