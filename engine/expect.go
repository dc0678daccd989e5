package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/record"
)

// Expect is called with the events that are folded next, and changes nothing. Their subjects
// lie far apart in memory, and a fold that looks one up waits for it. Expect looks all of them
// up first: its loads do not depend on each other, so the processor overlaps them, and each
// fold finds its subject in the cache.
func (e *Engine) Expect(events []record.Event) {
	var (
		requests collection.Prefetch[*store.Request]
		nodes    collection.Prefetch[*store.Node]
		s        *store.Namespace
		name     interlock.Namespace
	)
	for i := range events {
		ev := &events[i]
		if s == nil || ev.Namespace != name {
			if s, name = e.Namespaces[ev.Namespace], ev.Namespace; s == nil {
				continue
			}
		}
		if ev.ID != [16]byte{} {
			requests.Add(&s.Requests, collection.HashID(ev.ID))
		}
		for _, c := range ev.Claims {
			for key, more := string(c.Key), true; more; key, more = keypath.Parent(key) {
				nodes.Add(&s.Nodes, s.Salt.Hash(key))
			}
		}
	}
	e.seen ^= requests.Read() ^ nodes.Read()
}
