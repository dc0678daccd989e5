package shard

import (
	"context"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// Namespaces move between shards by steps that a directory of shards orders: see package placement. The methods
// here take the steps of one shard. Each may be repeated; a step that does not follow the one before is
// an *interlock.Error with CodeMoving.

// Moving lists the namespaces of the shard that answer nothing, because they move.
func (s *Shard) Moving(ctx context.Context) (list []engine.MovingNamespace, err error) {
	_, err = s.Read(ctx, "", func(e *engine.Engine, _ engine.Time) { list = e.MovingNamespaces() })
	return list, err
}

// Move takes a step of a move that needs nothing but the shard: all but those of a copy.
func (s *Shard) Move(ctx context.Context, ns interlock.Namespace, move uint64, other int, step record.MoveStep) error {
	return s.move(ctx, &engine.MoveNamespace{Head: engine.Head{Namespace: ns}, Number: move, Other: other, Step: step})
}

func (s *Shard) move(ctx context.Context, cmd *engine.MoveNamespace) error {
	cmd.Cursor = s.At().Index
	eff, _, err := s.Do(ctx, cmd)
	if err == nil && eff.Outcome != engine.Done {
		err = &interlock.Error{Code: eff.Code, Message: fmt.Sprintf(
			"the shard refuses step %d of move %d of namespace %q", cmd.Step, cmd.Number, cmd.Namespace,
		)}
	}
	return err
}

// CopyNamespace copies a namespace that another shard has closed for a move into this one, which does not open
// it. It replays the journal of that shard, and needs as much memory meanwhile as the shard has.
func (s *Shard) CopyNamespace(
	ctx context.Context, ns interlock.Namespace, move uint64, other int, from Source,
) error {
	r, err := replay(ctx, from, engine.New(), ^interlock.Index(0), inTurn, nil)
	if err != nil {
		return err
	}
	step := func(step record.MoveStep, export engine.NamespaceExport, piece []byte) error {
		return s.move(ctx, &engine.MoveNamespace{
			Head: engine.Head{Namespace: ns}, Number: move, Other: other, Step: step, From: export, Piece: piece,
		})
	}
	export, err := r.engine.Exports(ns, move)
	if err != nil {
		return err
	}
	if err := step(record.MoveArriving, export, nil); err != nil {
		return err
	}
	err = r.engine.Export(ns, move, func(piece []byte) error { return step(record.MoveCopied, export, piece) })
	if err != nil {
		return err
	}
	return step(record.MoveArrived, export, nil)
}

// refusal returns the answer to a query about a namespace that answers nothing, nil if it was carried out.
func (v *visit) refusal(at interlock.At) error {
	if !v.moving {
		return nil
	}
	return &interlock.Error{
		Code: interlock.CodeMoving, At: at,
		Message: fmt.Sprintf(
			"namespace %q moves to another shard: its leases and queue positions are kept; repeat the request in a moment",
			v.Namespace,
		),
	}
}
