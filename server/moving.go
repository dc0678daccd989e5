package server

import (
	"fmt"
	"sync"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/record"
)

// A namespace that moves to another shard answers nothing until it opens there. Its waiting calls ask again, and
// are refused with moving. Its streams end with moving: their clients connect again, where the directory of
// shards leads them, and repeat what was not answered.

// leavers are the functions to call when a namespace was closed for a move.
type leavers struct {
	mu    sync.Mutex
	funcs []func(interlock.Namespace)
}

func (l *leavers) add(f func(interlock.Namespace)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.funcs = append(l.funcs, f)
}

// committed takes notice of a durable step of a move. It neither blocks nor calls the shard.
func (l *leavers) committed(ev *record.Event) {
	if record.MoveStep(ev.Op) != record.MoveClosed {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.funcs {
		f(ev.Namespace)
	}
}

// namespaceMoves is the reason that a stream ends with.
func namespaceMoves(ns interlock.Namespace) *interlock.Error {
	return &interlock.Error{
		Code: interlock.CodeMoving,
		Message: fmt.Sprintf(
			"namespace %q moves to another shard: connect again in a moment; leases and queue positions are kept", ns,
		),
	}
}

// leave ends the streams of a namespace that moves.
func (d *Streams) leave(ns interlock.Namespace) {
	d.cutThose(func(c carrier) bool {
		st, ok := c.(*stream)
		return ok && st.namespace == ns
	}, namespaceMoves(ns))
}

// isOfCopy reports whether an event is about the copy of a namespace that moves, which readers do not see.
func isOfCopy(ev *record.Event) bool {
	step := record.MoveStep(ev.Op)
	return ev.Kind == record.NamespaceMoved && record.MoveArriving <= step && step <= record.MoveArrived
}

// writeMove writes a step of a move.
func writeMove(j *jsonOut, ev *record.Event) {
	j.decimal("move", ev.Generation)
	j.str("step", record.MoveStep(ev.Op).String())
	j.int("other_shard", int64(ev.OtherShard))
}

// WebhooksBehind reports whether a webhook of a namespace has messages to send about events up to an index.
func (s *Server) WebhooksBehind(ns interlock.Namespace, index interlock.Index) bool {
	return s.sender.IsBehind(ns, index)
}
