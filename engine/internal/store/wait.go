package store

import (
	"slices"
)

// Wait is the part that only a waiter has.
type Wait struct {
	Score  Time
	Writes uint64        // Engine.writes when it arrived
	Only   [1]QueueEntry // its place, if it needs one thing; the request is always said
	more   *[]QueueEntry // its places, if it needs more
	at     int32         // its place in search.hops, once a deadlock search has come to it
	seat   int32         // its index in Namespace.Waits
	Rank   int32         // the priority with which it waits: its own, or one that it inherits

	// Volatile.
	Caller Caller
	Link   uint64
	Since  uint64 // Engine.listens when its caller began to listen
}

// Entries returns the places that a waiter has in line, in the order of its needs.
func (w *Wait) Entries() []QueueEntry {
	switch {
	case w.Only[0].Class != nil:
		return w.Only[:]
	case w.more != nil:
		return *w.more
	}
	return nil
}

// room returns room for n places.
func (w *Wait) room(n int) []QueueEntry {
	if n <= 1 {
		return w.Only[:n]
	}
	if w.more == nil {
		w.more = &[]QueueEntry{}
	}
	*w.more = slices.Grow((*w.more)[:0], n)[:n]
	return *w.more
}

// SetIndex implements collection.SetMember, for Namespace.Waits.
func (w *Wait) SetIndex() *int32 { return &w.seat }

// Req returns the waiting request.
func (w *Wait) Req() *Request { return w.Only[0].Req }
