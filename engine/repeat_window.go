package engine

import (
	"maps"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
	"github.com/interlockdev/interlock/engine/record"
)

// How long a request id is remembered: for a time and a number of later ids, which is the
// window, and beyond the window for as long as what it made lives. So a repeat never makes a
// second one beside the first.
//
//	        ┌─ in the window ─┐  what it made lives   ┌──────┐
//	new ──► │ known and order │ ────────────────────► │ kept │
//	        └────────┬────────┘                       └───┬──┘
//	                 │ else                               │ the end of the created object
//	                 ▼                                    ▼
//	             forgotten                            forgotten
//
// One id creates one object, and ids that created none are not kept beyond the window. So the
// kept ids are bounded by the live objects. Events of versions that kept none do not record the
// created object, and their ids are forgotten as they were then.

// objectKind is the kind of a created object. The numbers are in journals.
type objectKind uint8

const (
	madeRequest objectKind = 1 + iota // a lease, or a waiter that becomes one
	madeSession
	madeTask // or message
	madeDeed // which is an effect
)

// createdObject is the object that a command created.
type createdObject struct {
	kind objectKind
	id   [16]byte
}

// objectWindows knows in which window the id is kept that made a thing.
type objectWindows map[createdObject]*idWindow

// idWindow remembers the answers to the request ids of a session, or of all in a
// namespace that have none.
type idWindow struct {
	known map[string]storedAnswer
	order collection.Queue[string] // those in the window, oldest first
	last  Time                     // when the newest of them was answered
	kept  map[createdObject]string // those that have left it
}

// idBounds are how many ids the window of a namespace has, that of a session, and that of a
// session at least, however old they are.
type idBounds struct{ namespace, session, least int }

// windows are those of every engine but in tests: a replay needs the ones of the journal.
var windows = idBounds{interlock.MaxRequestIDs, interlock.MaxSessionRequestIDs, interlock.MinSessionRequestIDs}

// madeBy returns the kind of object that ev's command creates, 0 for none.
func madeBy(ev *record.Event) objectKind {
	switch ev.Kind {
	case record.Queued, record.Granted:
		return madeRequest
	case record.SessionOpened:
		return madeSession
	case record.TaskSubmitted:
		return madeTask
	case record.EffectChanged:
		if len(ev.Blob) > 0 {
			return madeDeed
		}
	}
	return 0
}

// lives reports whether what a command made is still there. A task and an effect are there
// until they are forgotten.
func (s *namespace) lives(x createdObject, now Time) bool {
	switch x.kind {
	case madeRequest:
		return s.live(x.id) != nil
	case madeSession:
		x := s.sessions[x.id]
		return x != nil && !x.dead
	case madeTask:
		return s.tasks.known[x.id] != nil
	case madeDeed:
		return s.sideEffects.of(x.id, now) != nil
	}
	return false
}

// thing returns the object that the command created.
func (a *storedAnswer) thing() createdObject { return createdObject{a.made, a.id} }

// remember remembers one more. The oldest leave the window: all above limit, and those that
// are older than the window, but not the last keep.
func (s *namespace) remember(w *idWindow, id string, a storedAnswer, limit, keep int) {
	if w.known == nil {
		w.known = map[string]storedAnswer{}
	}
	old, known := w.known[id]
	if known && w.keeps(id, &old) {
		s.kept.drop(old.thing())
		known = false
	}
	if !known {
		w.order.Push(id)
	}
	w.known[id] = a
	w.last = max(w.last, a.at)
	for w.order.Len() > limit || w.order.Len() > keep && a.at.Sub(w.known[w.order.At(0)].at) >= interlock.RequestIDWindow {
		oldest := w.order.Pop()
		if old := w.known[oldest]; s.lives(old.thing(), a.at) {
			s.keep(w, oldest, old)
		} else {
			delete(w.known, oldest)
		}
	}
}

// keep remembers an answer for as long as what it made lives.
func (s *namespace) keep(w *idWindow, id string, a storedAnswer) {
	x := a.thing()
	if s.kept[x] != nil {
		delete(w.known, id) // no engine makes a thing twice
		return
	}
	if w.known == nil {
		w.known = map[string]storedAnswer{}
	}
	if w.kept == nil {
		w.kept = map[createdObject]string{}
	}
	w.known[id], w.kept[x], s.kept[x] = a, id, w
}

// keeps reports whether an answer has left the window.
func (w *idWindow) keeps(id string, a *storedAnswer) bool {
	was, ok := w.kept[a.thing()]
	return ok && was == id
}

// drop forgets the id that made x, if it has left its window.
func (k objectWindows) drop(x createdObject) {
	w := k[x]
	if w == nil {
		return
	}
	delete(w.known, w.kept[x])
	delete(w.kept, x)
	delete(k, x)
}

// leave forgets what is kept in the window of a session that is over.
func (k objectWindows) leave(w *idWindow) {
	for _, id := range slices.Sorted(maps.Values(w.kept)) {
		a := w.known[id]
		delete(k, a.thing())
	}
}

// recall returns the answer that is remembered under an id, nil for none.
func (s *namespace) recall(w *idWindow, id string, now Time) *storedAnswer {
	a, ok := w.known[id]
	inWindow := ok && !w.keeps(id, &a) && (w != &s.ids || now.Sub(a.at) < interlock.RequestIDWindow)
	if !inWindow && !s.lives(a.thing(), now) {
		return nil
	}
	return &a
}
