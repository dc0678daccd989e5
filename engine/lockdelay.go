package engine

import (
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/record"
)

// closeLease closes r and tells its holder that it is over.
func (e *Engine) closeLease(r *store.Request, why record.Reason) {
	sess, lease := r.Session(), r.Lease()
	ev := e.endCause(r, why)
	ev.Kind, ev.LockDelay = record.Closed, r.LockDelay
	e.emit(ev)
	e.Arm(r)
	if sess != nil {
		e.lost(sess, r, lease)
	}
}
