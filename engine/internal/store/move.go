package store

import (
	"encoding/binary"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// Move is a move of a namespace to another shard, or from one, while the namespace answers nothing
// here. It is zero otherwise. Of a namespace that has left only this remains, until it comes back: a
// request that was sent here before is refused, and does not begin a second namespace of that name.
type Move struct {
	Number uint64
	Other  int             // the other shard
	Step   record.MoveStep // MoveClosed or MoveLeft at the source; MoveArriving or MoveArrived at the target
}

// Arrival is how a namespace came from another shard the last time. It is zero for one that began here.
type Arrival struct {
	Number uint64          // of the move
	Other  int             // the shard that it came from
	After  interlock.Index // what happened here since then has higher indexes
}

// IsUnderWay reports whether the namespace answers nothing here.
func (m Move) IsUnderWay() bool { return m.Step != 0 }

// IsCopy reports whether the namespace is the copy of one that still belongs to its source.
func (m Move) IsCopy() bool { return m.Step == record.MoveArriving || m.Step == record.MoveArrived }

// evolveMoved folds record.NamespaceMoved.
func (st *State) evolveMoved(ev *record.Event) error {
	step := record.MoveStep(ev.Op)
	s := st.Namespaces[ev.Namespace]
	switch step {
	case record.MoveClosed:
		if s = st.Namespace(ev.Namespace); s.Move.IsUnderWay() {
			return errUnknown
		}
		s.Move = Move{ev.Generation, int(ev.OtherShard), step}
		return nil
	case record.MoveArriving:
		return st.evolveArriving(ev, s)
	}
	if step == record.MoveOpened && (s == nil || !s.Move.IsUnderWay()) { // in a snapshot
		st.Namespace(ev.Namespace).Arrival = Arrival{ev.Generation, int(ev.OtherShard), interlock.Index(ev.By)}
		return nil
	}
	if s == nil && step == record.MoveLeft { // in a snapshot
		st.Namespace(ev.Namespace).Move = Move{ev.Generation, int(ev.OtherShard), step}
		return nil
	}
	if s == nil || s.Move.Number != ev.Generation {
		return errUnknown
	}
	at := s.Move.Step
	switch {
	case step == record.MoveReopened && at == record.MoveClosed:
		s.Move = Move{}
	case step == record.MoveLeft && at == record.MoveClosed:
		m := s.Move
		if err := st.evolveNamespaceGone(ev); err != nil {
			return err
		}
		m.Step = step
		st.Namespace(ev.Namespace).Move = m
	case step == record.MoveCopied && at == record.MoveArriving:
		return st.evolveCopied(ev)
	case step == record.MoveArrived && at == record.MoveArriving:
		s.Move.Step = step
	case step == record.MoveOpened && at == record.MoveArrived:
		s.Move = Move{}
		s.Arrival = Arrival{ev.Generation, int(ev.OtherShard), interlock.Index(ev.By)}
		for _, w := range s.SortedWebhooks() {
			moved := *w // queries share the old one
			moved.Cursor = interlock.Index(ev.By)
			s.Webhooks[w.Name] = &moved
		}
	case step == record.MoveDropped && s.Move.IsCopy():
		st.Remove(s)
	default:
		return errUnknown
	}
	return nil
}

// evolveArriving makes an empty namespace for a copy. What the source gave out is given out here as well:
// numbers of requests and sessions stay as they are, and later fences are above both shards'. The copy
// brings versions, so they do not begin above those of namespaces that are gone.
func (st *State) evolveArriving(ev *record.Event, s *Namespace) error {
	if s != nil && s.Move.Step == record.MoveClosed || s != nil && !s.Move.IsUnderWay() && !s.IsBare() {
		return fmt.Errorf("engine: namespace %q is copied into a shard that has it", ev.Namespace)
	}
	if s != nil {
		st.Remove(s)
	}
	s = st.Namespace(ev.Namespace)
	s.beginAt(0)
	s.Move = Move{ev.Generation, int(ev.OtherShard), record.MoveArriving}
	st.Num, st.SessionNum = max(st.Num, ev.Num), max(st.SessionNum, ev.Session)
	st.BaseVersion = max(st.BaseVersion, ev.Version)
	if ev.Fence != 0 {
		st.Fence = max(st.Fence, ev.Fence) + 1
	}
	return nil
}

// evolveCopied folds a piece of a copy as a replay does: nothing is watched before the namespace opens.
func (st *State) evolveCopied(ev *record.Event) error {
	live, last := st.Live, st.Last
	st.Live = false
	defer func() { st.Live, st.Last = live, last }()
	for rest := ev.Blob; len(rest) > 0; {
		n := 0
		if len(rest) >= 4 {
			n = 4 + int(binary.LittleEndian.Uint32(rest))
		}
		if n <= 4 || n > len(rest) {
			return record.ErrTruncated
		}
		err := record.DecodeEntry(rest[4:n], func(part *record.Event) error {
			if part.Namespace != ev.Namespace || part.Kind == record.NamespaceMoved {
				return errUnknown
			}
			return st.Evolve(part)
		})
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}
