package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// appendNotes adds the notes kept at n to list.
func (e *Engine) appendNotes(list []interlock.Note, n *store.Node) []interlock.Note {
	if n == nil || n.Notes == nil {
		return list
	}
	for _, t := range n.Notes.Notes {
		list = append(list, interlock.Note{
			Key: interlock.Key(n.Key), Agent: t.Agent, Fence: t.Fence,
			Outcome: t.Outcome, Text: t.Text, Age: e.Clock.Sub(t.At),
		})
	}
	return list
}

// notesFor returns the newest notes at the keys that r claims, oldest first.
func (e *Engine) notesFor(r *store.Request) (list []interlock.Note) {
	for i := range r.Needs() {
		if r.Needs()[i].Claimed {
			list = e.appendNotes(list, r.Needs()[i].Node)
		}
	}
	slices.SortStableFunc(list, func(a, b interlock.Note) int { return cmp.Compare(b.Age, a.Age) })
	return list[max(0, len(list)-store.ShownNotes):]
}
