package job

import (
	"encoding/json"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

// LeftoversWithin is how long what the command leaves behind may take to end.
const LeftoversWithin = 2 * time.Second

// Output takes the command's output. Output beyond the limit of a result is passed on,
// and is no result.
type Output struct {
	To     io.Writer
	Kept   []byte
	Passes bool
}

func (o *Output) Write(b []byte) (int, error) {
	o.Kept = append(o.Kept, b...)
	if o.Passes || len(o.Kept) > interlock.MaxResultBytes {
		return len(b), o.Pass()
	}
	return len(b), nil
}

// Pass passes on what was kept.
func (o *Output) Pass() error {
	o.Passes = true
	_, err := o.To.Write(o.Kept)
	o.Kept = o.Kept[:0]
	return err
}

// Result returns the output as the result; nil if it cannot be one.
func (o *Output) Result() any {
	text := strings.TrimRight(string(o.Kept), "\n")
	result := cli.ResultOf(text)
	if encoded, err := json.Marshal(result); err != nil || len(encoded) > interlock.MaxResultBytes ||
		!utf8.ValidString(text) {
		o.Passes = true
	}
	if o.Passes {
		return nil
	}
	return result
}

// NotStored returns what stands in the place of a result that cannot be stored.
func NotStored(reason string) json.RawMessage {
	mark, _ := json.Marshal(map[string]string{"interlock": "result not stored", "reason": cli.Clip(reason, 200)})
	return mark
}
