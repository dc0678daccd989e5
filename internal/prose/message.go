package prose

import (
	"errors"
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/message"
)

// Sentence returns a message of the engine in words, "" for none. A message of a newer version,
// which has no sentence here, is shown as its number and its values.
func Sentence(t *message.Text) string {
	if t == nil || t.ID == message.None {
		return ""
	}
	if int(t.ID) >= len(sentences) {
		return t.String()
	}
	if t.ID == message.NamespaceContents {
		return fmt.Sprintf(sentences[t.ID], contents(t.Args))
	}
	values := make([]any, len(t.Args))
	for i := range t.Args {
		values[i] = value(&t.Args[i])
	}
	return fmt.Sprintf(sentences[t.ID], values...)
}

// Sentences returns several messages in words.
func Sentences(list []*message.Text) []string {
	if len(list) == 0 {
		return nil
	}
	texts := make([]string, len(list))
	for i, t := range list {
		texts[i] = Sentence(t)
	}
	return texts
}

// value returns what a verb of a sentence formats.
func value(a *message.Arg) any {
	switch a.Kind {
	case message.Integer:
		return a.Number
	case message.Unsigned:
		return uint64(a.Number)
	case message.Duration:
		return time.Duration(a.Number)
	case message.Nested:
		return Sentence(a.Part)
	}
	return a.Text
}

// Refusal returns the refusal that an error is: one of a server, or one of the engine in words.
func Refusal(err error) (*interlock.Error, bool) {
	if e, ok := errors.AsType[*message.Error](err); ok {
		return &interlock.Error{Code: e.Code, Key: e.Key, Message: Sentence(e.Text)}, true
	}
	return errors.AsType[*interlock.Error](err)
}
