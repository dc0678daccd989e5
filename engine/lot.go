package engine

import (
	"slices"

	"github.com/interlockdev/interlock/engine/internal/store"
)

// rest has those tasks be dormant that have not found a worker: all if none of the idle
// ones is to be looked at any more, else those that none of them may hold.
func (e *Engine) rest(q *store.Queue) {
	if !q.NeedsDispatch {
		for _, t := range q.Fresh {
			if t.Eligibility == store.Runnable {
				e.setEligibility(t, store.Idle)
			}
		}
		q.Fresh, q.Parted = nil, false
	}
	if !q.Parted {
		return
	}
	q.Parted = false
	q.Fresh = slices.DeleteFunc(q.Fresh, func(t *store.Task) bool {
		if t.Eligibility == store.Runnable && !q.HasWorker(t) {
			e.setEligibility(t, store.Idle)
			return true
		}
		return false
	})
}
