package engine

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
)

// Limits on what is kept of notes.
const (
	notesPerKey = 8       // the last ones
	maxNoted    = 100_000 // keys of a namespace with notes; the one noted longest ago loses its own first
	shownNotes  = 16      // the newest of all keys of a lease
)

// note is a holder's note for the next.
type note struct {
	at      Time
	agent   string
	fence   interlock.Fence
	outcome string
	text    string
}

// noteBook holds a key's last notes, oldest first.
type noteBook struct {
	node  *node
	notes []note
	place collection.Element[*noteBook] // in namespace.notes
}

// leaveNote keeps a note at a key.
func (s *namespace) leaveNote(key string, t note) {
	n := s.node(key)
	if n.notes == nil {
		b := &noteBook{node: n}
		b.place.Value = b
		n.own().notes = b
		n.refs++
	} else {
		s.notes.Remove(&n.notes.place)
	}
	b := n.notes
	if len(b.notes) == notesPerKey {
		copy(b.notes, b.notes[1:])
		b.notes = b.notes[:notesPerKey-1]
	}
	b.notes = append(b.notes, t)
	s.notes.PushBack(&b.place)
	if s.notes.Len() > maxNoted {
		oldest := s.notes.Front().Value
		s.notes.Remove(&oldest.place)
		oldest.node.own().notes = nil
		oldest.node.drop()
	}
}

// appendNotes adds the notes kept at n to list.
func (e *Engine) appendNotes(list []interlock.Note, n *node) []interlock.Note {
	if n == nil || n.notes == nil {
		return list
	}
	for _, t := range n.notes.notes {
		list = append(list, interlock.Note{
			Key: interlock.Key(n.key), Agent: t.agent, Fence: t.fence,
			Outcome: t.outcome, Text: t.text, Age: e.now.Sub(t.at),
		})
	}
	return list
}

// notesFor returns the newest notes at the keys that r claims, oldest first.
func (e *Engine) notesFor(r *request) (list []interlock.Note) {
	for i := range r.needs() {
		if r.needs()[i].claimed {
			list = e.appendNotes(list, r.needs()[i].node)
		}
	}
	slices.SortStableFunc(list, func(a, b interlock.Note) int { return cmp.Compare(b.Age, a.Age) })
	return list[max(0, len(list)-shownNotes):]
}
