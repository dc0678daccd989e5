package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/keypath"
)

// Expect is told of events that are folded next, and changes nothing. What they are about
// lies far apart in memory, and a fold that looks it up waits for it. Expect looks all of
// it up before: none of its looks waits for another, so the processor does many of them
// in the time of one, and each fold finds in the cache what it needs.
func (e *Engine) Expect(events []Event) {
	var (
		requests collection.Prefetch[*request]
		nodes    collection.Prefetch[*node]
		s        *namespace
		name     interlock.Namespace
	)
	for i := range events {
		ev := &events[i]
		if s == nil || ev.Namespace != name {
			if s, name = e.spaces[ev.Namespace], ev.Namespace; s == nil {
				continue
			}
		}
		if ev.ID != [16]byte{} {
			requests.Add(&s.requests, collection.HashID(ev.ID))
		}
		for _, c := range ev.Claims {
			for key, more := string(c.Key), true; more; key, more = keypath.Parent(key) {
				nodes.Add(&s.nodes, s.salt.Hash(key))
			}
		}
	}
	e.seen ^= requests.Read() ^ nodes.Read()
}
