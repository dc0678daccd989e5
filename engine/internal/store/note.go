package store

import (
	"cmp"
	"slices"

	"github.com/interlockdev/interlock"
)

// notes returns the newest notes at the keys that r claims, oldest first.
func (r *Request) notes() (list []interlock.Note) {
	for i := range r.Needs() {
		if r.Needs()[i].Claimed {
			list = r.Needs()[i].Node.AppendNotes(list)
		}
	}
	slices.SortStableFunc(list, func(a, b interlock.Note) int { return cmp.Compare(b.Age, a.Age) })
	return list[max(0, len(list)-ShownNotes):]
}

// AppendNotes adds the notes kept at n to list.
func (n *Node) AppendNotes(list []interlock.Note) []interlock.Note {
	if n == nil || n.Notes == nil {
		return list
	}
	for _, t := range n.Notes.Notes {
		list = append(list, interlock.Note{
			Key: interlock.Key(n.Key), Agent: t.Agent, Fence: t.Fence,
			Outcome: t.Outcome, Text: t.Text, Age: n.NS.Now().Sub(t.At),
		})
	}
	return list
}
