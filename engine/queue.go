package engine

import (
	"github.com/interlockdev/interlock/engine/internal/store"
)

func (e *Engine) refuseQueue(name string) {
	no := store.UnknownQueue(name)
	e.refuse(no.Code, no.Message)
}
