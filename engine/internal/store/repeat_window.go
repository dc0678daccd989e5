package store

import (
	"maps"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/collection"
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

// ObjectKind is the kind of a created object. The numbers are in journals.
type ObjectKind uint8

const (
	MadeRequest ObjectKind = 1 + iota // a lease, or a waiter that becomes one
	MadeSession
	MadeTask   // or message
	MadeEffect // which is an effect
)

// createdObject is the object that a command created.
type createdObject struct {
	kind ObjectKind
	id   [16]byte
}

// objectWindows knows in which window the id is kept that made a thing.
type objectWindows map[createdObject]*IDWindow

// IDWindow remembers the answers to the request ids of a session, or of all in a
// namespace that have none.
type IDWindow struct {
	Known map[string]StoredAnswer
	Order collection.Queue[string] // those in the window, oldest first
	last  Time                     // when the newest of them was answered
	Kept  map[createdObject]string // those that have left it
}

// IDBounds are how many ids the window of a namespace has, that of a session, and that of a
// session at least, however old they are.
type IDBounds struct{ Namespace, Session, Least int }

// windows are those of every engine but in tests: a replay needs the ones of the journal.
var windows = IDBounds{interlock.MaxRequestIDs, interlock.MaxSessionRequestIDs, interlock.MinSessionRequestIDs}

// lives reports whether the object that a command made is still there. A task and an effect are there
// until they are forgotten.
func (s *Namespace) lives(x createdObject, now Time) bool {
	switch x.kind {
	case MadeRequest:
		return s.Live(x.id) != nil
	case MadeSession:
		x := s.Sessions[x.id]
		return x != nil && !x.Dead
	case MadeTask:
		return s.Tasks.Known[x.id] != nil
	case MadeEffect:
		return s.SideEffects.Of(x.id, now) != nil
	}
	return false
}

// thing returns the object that the command created.
func (a *StoredAnswer) thing() createdObject { return createdObject{a.Made, a.ID} }

// remember remembers one more. The oldest leave the window: all above limit, and those that
// are older than the window, but not the last keep.
func (s *Namespace) remember(w *IDWindow, id string, a StoredAnswer, limit, keep int) {
	if w.Known == nil {
		w.Known = map[string]StoredAnswer{}
	}
	old, known := w.Known[id]
	if known && w.keeps(id, &old) {
		s.kept.drop(old.thing())
		known = false
	}
	if !known {
		w.Order.Push(id)
	}
	w.Known[id] = a
	w.last = max(w.last, a.At)
	for w.Order.Len() > limit || w.Order.Len() > keep && a.At.Sub(w.Known[w.Order.At(0)].At) >= interlock.RequestIDWindow {
		oldest := w.Order.Pop()
		if old := w.Known[oldest]; s.lives(old.thing(), a.At) {
			s.keep(w, oldest, old)
		} else {
			delete(w.Known, oldest)
		}
	}
}

// keep remembers an answer for as long as the object that it made lives.
func (s *Namespace) keep(w *IDWindow, id string, a StoredAnswer) {
	x := a.thing()
	if s.kept[x] != nil {
		delete(w.Known, id) // no engine makes a thing twice
		return
	}
	if w.Known == nil {
		w.Known = map[string]StoredAnswer{}
	}
	if w.Kept == nil {
		w.Kept = map[createdObject]string{}
	}
	w.Known[id], w.Kept[x], s.kept[x] = a, id, w
}

// keeps reports whether an answer has left the window.
func (w *IDWindow) keeps(id string, a *StoredAnswer) bool {
	was, ok := w.Kept[a.thing()]
	return ok && was == id
}

// drop forgets the id that made x, if it has left its window.
func (k objectWindows) drop(x createdObject) {
	w := k[x]
	if w == nil {
		return
	}
	delete(w.Known, w.Kept[x])
	delete(w.Kept, x)
	delete(k, x)
}

// leave drops the kept answers of a session that is over.
func (k objectWindows) leave(w *IDWindow) {
	for _, id := range slices.Sorted(maps.Values(w.Kept)) {
		a := w.Known[id]
		delete(k, a.thing())
	}
}

// Recall returns the answer that is remembered under an id, nil for none.
func (s *Namespace) Recall(w *IDWindow, id string, now Time) *StoredAnswer {
	a, ok := w.Known[id]
	inWindow := ok && !w.keeps(id, &a) && (w != &s.IDs || now.Sub(a.At) < interlock.RequestIDWindow)
	if !inWindow && !s.lives(a.thing(), now) {
		return nil
	}
	return &a
}

// seqWindow remembers the answers to a session's numbered commands: those above
// floor. It is a ring indexed by the number, which grows as far as needed.
type seqWindow struct {
	Floor uint64
	Ring  []SeqAnswer
}

type SeqAnswer struct {
	Seq uint64
	StoredAnswer
}

// maxWindow bounds how many answers a stream's session keeps when its client does
// not say what it has seen.
const maxWindow = 4096

func (w *seqWindow) Get(seq uint64) (a *StoredAnswer, tooOld bool) {
	if seq <= w.Floor {
		return nil, true
	}
	if len(w.Ring) > 0 {
		if slot := &w.Ring[seq%uint64(len(w.Ring))]; slot.Seq == seq {
			return &slot.StoredAnswer, false
		}
	}
	return nil, false
}

func (w *seqWindow) put(seq, acked uint64, a StoredAnswer) {
	w.Floor = max(w.Floor, min(acked, seq-1))
	for seq-w.Floor > uint64(len(w.Ring)) {
		if len(w.Ring) == maxWindow {
			w.Floor = seq - maxWindow
			break
		}
		grown := make([]SeqAnswer, max(8, 2*len(w.Ring)))
		for _, slot := range w.Ring {
			if slot.Seq > w.Floor {
				grown[slot.Seq%uint64(len(grown))] = slot
			}
		}
		w.Ring = grown
	}
	w.Ring[seq%uint64(len(w.Ring))] = SeqAnswer{seq, a}
}
