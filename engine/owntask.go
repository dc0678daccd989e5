package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// refuseOwnAttempt refuses a call that would wait for an attempt of its own session.
func (e *Engine) refuseOwnAttempt(l *store.Request) {
	id := l.Task.ID
	e.refuse(
		interlock.CodeInvalidRequest, message.New(message.OwnAttempt, message.Str(id.String()), message.Str(id.String())),
	)
}
