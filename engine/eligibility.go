package engine

import (
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/record"
)

// lookAgain is look for a task that stood in line before. It returns false when nothing blocks
// it.
func (e *Engine) lookAgain(t *store.Task, watched int) bool {
	r, aside := t.Request, t.Eligibility.IsYielding()
	switch i := e.Look(t, watched); {
	case i < 0:
		return false
	case r.Hopeless(&r.Needs()[i]):
		e.fallBack(t, record.ByPattern)
	case aside && !t.Eligibility.IsYielding():
		e.Suspect(nil, r) // others wait for it from now on
	}
	return true
}
