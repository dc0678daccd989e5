package message_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/interlockdev/interlock/engine/message"
)

func TestCodec(t *testing.T) {
	whole := message.New(message.NotBetween, message.Str("ttl"), message.Dur(
		-time.Second,
	), message.Num(-3), message.Num(^uint64(0)),
		message.Sub(nil), message.Sub(message.New(message.KeyHeld, message.Str("account:1"))), message.Str(""))
	for _, text := range []*message.Text{message.New(message.ShuttingDown), message.New(60000), whole} {
		b := message.Append(nil, text)
		got, err := message.Read(b)
		if err != nil || !reflect.DeepEqual(got, text) {
			t.Errorf("%v is read as %v, %v", text, got, err)
		}
		for n := range b {
			if got, err := message.Read(b[:n]); err == nil {
				t.Errorf("the first %d bytes of %v are read as %v", n, text, got)
			}
		}
		if _, err := message.Read(append(b, 0)); err == nil {
			t.Errorf("%v is read with a byte too many", text)
		}
	}
	deep := message.New(message.KeyHeld)
	for range 9 {
		deep = message.New(message.InvalidKey, message.Sub(deep))
	}
	for name, b := range map[string][]byte{
		"more values than any message has": {1, 200, 1}, "a kind that does not exist": {1, 1, 9},
		"an id that is too large":              {255, 255, 127, 0},
		"messages too deep inside one another": message.Append(nil, deep),
		"a part that is neither there nor not": {1, 1, 5, 2}, "a text that is cut": {1, 1, 1, 5, 'a'},
	} {
		if got, err := message.Read(b); err == nil {
			t.Errorf("%s is read as %v", name, got)
		}
	}
}
