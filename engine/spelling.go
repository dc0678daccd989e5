package engine

import (
	"slices"

	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// spellVisits is the cost, in objects, of recording one.
const spellVisits = 4

// spellMore notes a swath of them.
func (e *Engine) spellMore(s *store.Namespace) {
	x := s.Respelling
	note := func(o store.SpelledKey) {
		e.Visited += spellVisits
		if !slices.Contains(s.Alike[keypath.Skeleton(o.SpelledAs())], o) { // it may have come since
			s.Spelled(o, true)
		}
	}
	for begin := e.Visited; e.Visited < begin+e.Swath; {
		if s.Nodes.Part(x.Part, func(n *store.Node) { note(n) }) {
			x.Part++
			e.Visited++
			continue
		}
		x.Docs = min(x.Docs, len(s.Documents.Present))
		if x.Docs == 0 {
			s.Respelling = nil
			return
		}
		x.Docs--
		note(s.Documents.Present[x.Docs])
	}
}

// NearestName returns the one of some names that is spelled most like another, the first of several;
// "" if there are none.
func NearestName(name string, names []string) (nearest string) {
	least := 0
	for _, n := range names {
		if d := keypath.Distance(name, n); nearest == "" || d < least {
			nearest, least = n, d
		}
	}
	return nearest
}
