package message

import (
	"fmt"

	"github.com/interlockdev/interlock"
)

// Error is why the engine does not answer a question. Package prose makes an *interlock.Error of it
// where it is shown.
type Error struct {
	Code interlock.Code
	Key  interlock.Key // "" for none
	Text *Text
}

// Error returns the code, for logs.
func (e *Error) Error() string { return fmt.Sprintf("engine: %s %s", e.Code, e.Key) }

// Is reports whether target is an *interlock.Error with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*interlock.Error)
	return ok && t.Code == e.Code
}
