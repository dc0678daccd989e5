package engine

import (
	"encoding/binary"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// A namespace moves to another shard as a whole. It is closed at its source: no command is carried out, and its
// time stands still, so that nothing ends while no holder can be heard. Its part of a snapshot is copied into
// the target piece by piece, and opened there. All ids, fences and versions stay; sessions and leases get a full
// ttl when the namespace opens, as at the beginning of a term. The source keeps the name, so that it refuses
// what was sent there before.
//
// The engine takes the steps in order, and knows nothing about the other shard. Package placement has the
// directory of shards, and package cluster the servers that follow it.

// isMoving reports whether a step is about a namespace that answers nothing at the moment.
func (e *Engine) isMoving() bool {
	return e.PendingWork.NS != nil && e.PendingWork.NS.Move.IsUnderWay()
}

// isClosedTo reports whether a command is not carried out because its namespace moves. Messages of
// webhooks that were due before may still be acknowledged.
func (e *Engine) isClosedTo(cmd Command) bool {
	if !e.isMoving() {
		return false
	}
	switch cmd.(type) {
	case *MoveNamespace:
		return false
	case *AckWebhook:
		return e.PendingWork.NS.Move.Step != record.MoveClosed
	}
	return true
}

// decide takes a step of a move.
func (c *MoveNamespace) decide(e *Engine) {
	s := e.PendingWork.NS
	var at store.Move
	if s != nil {
		at = s.Move
	}
	mine := at.Number == c.Number
	done, follows := false, false
	switch c.Step {
	case record.MoveClosed:
		done, follows = mine && at.Step == c.Step, !at.IsUnderWay()
	case record.MoveLeft:
		done, follows = !at.IsUnderWay() || mine && at.Step == c.Step, mine && at.Step == record.MoveClosed
	case record.MoveArriving:
		done = mine && at.Step == record.MoveArrived
		follows = at.Step != record.MoveClosed && (s == nil || at.IsUnderWay() || s.IsBare())
		if problem := e.noRoomForSpace(); problem != nil && !done {
			e.refuse(interlock.CodeTooManyNamespaces, problem)
			return
		}
	case record.MoveCopied:
		follows = mine && at.Step == record.MoveArriving
	case record.MoveArrived:
		done, follows = mine && at.Step == c.Step, mine && at.Step == record.MoveArriving
	case record.MoveReopened:
		done, follows = !at.IsUnderWay(), mine && at.Step == record.MoveClosed
	case record.MoveOpened:
		done, follows = !at.IsUnderWay(), mine && at.Step == record.MoveArrived
	case record.MoveDropped:
		done = !at.IsUnderWay() || at.Step == record.MoveLeft
		follows = mine && at.IsCopy()
	}
	switch {
	case done:
		e.reply(Done)
	case !follows:
		e.refuse(interlock.CodeMoving, message.New(message.MoveOutOfOrder, message.Str(c.Namespace)))
	default:
		c.take(e)
	}
}

// take emits the step, and begins or ends the namespace's time here.
func (c *MoveNamespace) take(e *Engine) {
	*e.draft() = record.Event{
		Kind: record.NamespaceMoved, Namespace: c.Namespace, Op: uint8(c.Step), Generation: c.Number,
		OtherShard: uint64(c.Other), Actor: c.Actor,
	}
	switch c.Step {
	case record.MoveArriving:
		e.ev.Num, e.ev.Session, e.ev.Fence, e.ev.Version = c.From.Num, c.From.Session, c.From.Fence, c.From.Version
	case record.MoveCopied:
		e.ev.Blob = c.Piece
	case record.MoveOpened:
		e.ev.By = uint64(c.Cursor)
	}
	e.emit(e.ev)
	switch c.Step {
	case record.MoveClosed:
		e.Alarms.Clear(&e.PendingWork.Alarm)
		e.Empty.Clear(&e.PendingWork.Empty)
	case record.MoveReopened, record.MoveOpened:
		e.recoverNamespace(e.PendingWork.NS, e.Clock)
	}
	e.reply(Done)
}

// MovingNamespace is a namespace that answers nothing here, because it moves.
type MovingNamespace struct {
	Namespace interlock.Namespace
	Number    uint64 // of the move
	Other     int    // the other shard
	Step      record.MoveStep
}

// MovingNamespaces lists the namespaces that answer nothing here because they move, in the order of their
// names, without those that have left.
func (e *Engine) MovingNamespaces() (list []MovingNamespace) {
	for _, s := range e.Sorted() {
		if s.Move.IsUnderWay() && s.Move.Step != record.MoveLeft {
			list = append(list, MovingNamespace{s.Name, s.Move.Number, s.Move.Other, s.Move.Step})
		}
	}
	return list
}

// Arrived returns the index after which the events of a namespace in this shard begin, because it came from another
// shard; 0 for one that began here.
func (e *Engine) Arrived(ns interlock.Namespace) interlock.Index {
	if s := e.Namespaces[ns]; s != nil {
		return s.Arrival.After
	}
	return 0
}

// IsMoving reports whether a namespace answers nothing here because it moves, so that a query
// must not show it.
func (e *Engine) IsMoving(ns interlock.Namespace) bool {
	s := e.Namespaces[ns]
	return s != nil && s.Move.IsUnderWay()
}

// pieceBytes is about how large a piece of a copy is. One with a large document is larger.
const pieceBytes = 64 << 10

// Exports returns what the shard has given out, for a move of a namespace that was closed for it.
func (e *Engine) Exports(ns interlock.Namespace, number uint64) (NamespaceExport, error) {
	s := e.Namespaces[ns]
	if s == nil || s.Move.Step != record.MoveClosed || s.Move.Number != number {
		return NamespaceExport{}, fmt.Errorf("engine: namespace %q is not closed for move %d", ns, number)
	}
	return NamespaceExport{e.Num, e.SessionNum, e.Fence, e.BaseVersion}, nil
}

// Export hands over the state of a namespace that was closed for a move, in pieces for MoveNamespace, in their
// order. It stops at an error of piece.
func (e *Engine) Export(ns interlock.Namespace, number uint64, piece func([]byte) error) error {
	if _, err := e.Exports(ns, number); err != nil {
		return err
	}
	out := &pieceWriter{piece: piece}
	w := newSnapshotter(e, out)
	w.contents(e.Namespaces[ns])
	if err := w.end(); err != nil {
		return err
	}
	return out.flush()
}

// pieceWriter cuts the entries of a snapshot into pieces of whole entries.
type pieceWriter struct {
	piece func([]byte) error
	buf   []byte
	whole int // bytes of whole entries in buf
}

// Write takes a part of a snapshot.
func (w *pieceWriter) Write(b []byte) (int, error) {
	w.buf = append(w.buf, b...)
	for len(w.buf)-w.whole >= 4 {
		n := 4 + int(binary.LittleEndian.Uint32(w.buf[w.whole:]))
		if len(w.buf)-w.whole < n {
			break
		}
		if w.whole += n; w.whole >= pieceBytes {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(b), nil
}

func (w *pieceWriter) flush() error {
	if w.whole == 0 {
		return nil
	}
	piece := w.buf[:w.whole:w.whole]
	w.buf, w.whole = append([]byte(nil), w.buf[w.whole:]...), 0
	return w.piece(piece)
}
