package engine

import (
	"github.com/interlockdev/interlock/engine/internal/store"
)

// suspectMore suspects those of the next swath.
func (e *Engine) suspectMore() {
	s := e.PendingWork.NS
	for begin := e.Visited; e.Visited < begin+e.Swath && !e.full(); e.Doubt.Part++ {
		e.Visited++
		if !s.Requests.Part(e.Doubt.Part, func(r *store.Request) {
			e.Visited++
			p := r.FlowState
			if r.Phase == store.Waiting && (r.Target != nil || p != nil && (p.HoldsAndWaits || len(p.Waits) > 1)) {
				e.Suspect(p, r)
			}
		}) {
			e.Doubt = store.SuspectScan{}
			return
		}
	}
}
