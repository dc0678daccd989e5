package engine

import "github.com/interlockdev/interlock/engine/internal/store"

// LookBack prepares an engine that has only folded entries for queries as of a time, or as of the last
// entry if that is later. It decides nothing, so the state stays that of the journal, and the engine is for
// queries alone from then on: no Step may follow.
//
// Heartbeats are not journaled. So each session, lease and wait that had not ended counts as renewed at
// that time.
func (e *Engine) LookBack(at store.Time) {
	e.enter(&e.Whole, max(at, e.newest))
	for _, s := range e.Sorted() {
		for _, sess := range s.SortedSessions() {
			sess.Renewed = e.Clock
		}
		for i := 0; s.Requests.Part(i, func(r *store.Request) {
			if r.Phase == store.Held || r.Phase == store.Waiting {
				r.Renewed = e.Clock
			}
		}); i++ {
		}
	}
}
