package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cluster"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/placement"
	"github.com/interlockdev/interlock/server"
)

// Moves of namespaces. The node decides which step a shard takes (package cluster), and the shard takes it.

// movingStates are the states of a namespace that answers nothing in its shard.
var movingStates = map[record.MoveStep]cluster.MovingState{
	record.MoveClosed: cluster.Closed, record.MoveArriving: cluster.Copying, record.MoveArrived: cluster.Copied,
}

// moveSteps are the steps that need nothing but the shard.
var moveSteps = map[cluster.MoveStep]record.MoveStep{
	cluster.CloseNamespace: record.MoveClosed, cluster.ReopenNamespace: record.MoveReopened,
	cluster.LeaveNamespace: record.MoveLeft, cluster.OpenNamespace: record.MoveOpened,
	cluster.DropNamespace: record.MoveDropped,
}

// Moving implements cluster.Owned.
func (t *leadership) Moving(ctx context.Context) (list []cluster.Moving, err error) {
	here, err := t.shard.Moving(ctx)
	for _, m := range here {
		list = append(list, cluster.Moving{
			Namespace: string(m.Namespace), Move: m.Number, Other: m.Other, State: movingStates[m.Step],
		})
	}
	return list, err
}

// Take implements cluster.Owned. A namespace is left when the messages of its webhooks about what happened here are
// sent: the target sends those about what happens there.
func (t *leadership) Take(ctx context.Context, step cluster.MoveStep, m cluster.Moving) (done bool, err error) {
	ns := interlock.Namespace(m.Namespace)
	switch step {
	case cluster.CopyNamespace:
		store, err := t.sibling(m.Other)
		if err != nil {
			return false, err
		}
		from, err := store.Reader(ctx)
		if err != nil {
			return false, err
		}
		if err := t.shard.CopyNamespace(ctx, ns, m.Move, m.Other, from); err != nil {
			return false, err
		}
	case cluster.LeaveNamespace:
		if t.server.WebhooksBehind(ns, t.closedAt(m.Move)) {
			return false, nil
		}
	}
	if step != cluster.CopyNamespace {
		err = t.shard.Move(ctx, ns, m.Move, m.Other, moveSteps[step])
	}
	if err != nil {
		return false, err
	}
	t.log.Info(
		"a step of a move", "shard", t.shard.At().Shard, "namespace", m.Namespace, "move", m.Move, "step", step.String(),
	)
	return true, nil
}

// closedAt returns an index that the journal had when the namespace of a move was closed, the same one each time.
func (t *leadership) closedAt(move uint64) interlock.Index {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed == nil {
		t.closed = map[uint64]interlock.Index{}
	}
	if t.closed[move] == 0 {
		t.closed[move] = t.shard.At().Index
	}
	return t.closed[move]
}

// Placement implements server.Operations.
func (f *fleet) Placement(ctx context.Context, now bool) (p server.Placement, err error) {
	n := f.node.Load()
	if n == nil {
		return p, f.away()
	}
	d := n.View().Directory
	if now {
		if d, err = n.Directory(ctx); err != nil {
			return p, f.refused(err)
		}
	}
	p.LastMove, p.Moved, p.Stores = d.LastMove, map[interlock.Namespace]int{}, map[int]string{}
	for i, store := range d.More {
		p.Stores[d.Shards+i] = store
	}
	for _, m := range d.Moves {
		p.Moves = append(p.Moves, namespaceMove(m))
	}
	for ns, shard := range d.Exceptions {
		p.Moved[interlock.Namespace(ns)] = shard
	}
	return p, nil
}

func namespaceMove(m placement.Move) server.NamespaceMove {
	return server.NamespaceMove{
		Number: m.Number, Namespace: interlock.Namespace(m.Namespace), From: m.From, To: m.To, Step: string(m.Step),
	}
}

// Move implements server.Operations.
func (f *fleet) Move(ctx context.Context, ns interlock.Namespace, to int) (*server.NamespaceMove, error) {
	n := f.node.Load()
	if n == nil {
		return nil, f.away()
	}
	switch m, err := n.Move(ctx, string(ns), to); {
	case errors.Is(err, placement.ErrSameShard):
		return nil, nil
	case err != nil:
		return nil, f.refused(err)
	default:
		at := namespaceMove(m)
		return &at, nil
	}
}

// TakeBack implements server.Operations.
func (f *fleet) TakeBack(ctx context.Context, number uint64) error {
	n := f.node.Load()
	if n == nil {
		return f.away()
	}
	return f.refused(n.TakeBack(ctx, number))
}

// AddShards implements server.Operations. The server itself must have the store, so that a name is not misspelled.
func (f *fleet) AddShards(ctx context.Context, store string, shards int) error {
	n := f.node.Load()
	switch {
	case n == nil:
		return f.away()
	case f.stores[store] == nil:
		return &interlock.Error{
			Code:    interlock.CodeInvalidRequest,
			Message: fmt.Sprintf("this server has no store %q: start all servers with --store %s=URL first", store, store),
		}
	}
	return f.refused(n.AddShards(ctx, store, shards))
}

// Drain implements server.Operations.
func (f *fleet) Drain(ctx context.Context, member string, on bool) error {
	n := f.node.Load()
	if n == nil {
		return f.away()
	}
	return f.refused(n.Evacuate(ctx, member, on))
}

// moveCodes are the codes of the directory's refusals.
var moveCodes = []struct {
	err  error
	code interlock.Code
}{
	{placement.ErrUnknownShard, interlock.CodeInvalidRequest},
	{placement.ErrUnknownMove, interlock.CodeNotFound},
	{cluster.ErrUnknownMember, interlock.CodeInvalidRequest},
	{placement.ErrSwitched, interlock.CodeInvalidRequest},
	{placement.ErrStoreName, interlock.CodeInvalidRequest},
	{placement.ErrTooManyShards, interlock.CodeInvalidRequest},
	{cluster.ErrOlder, interlock.CodeInvalidRequest},
	{placement.ErrMoving, interlock.CodeMoving},
	{placement.ErrDirectoryFull, interlock.CodeOverloaded},
}

// refused returns the answer to an operation that the directory, or its engine, does not carry out.
func (f *fleet) refused(err error) error {
	if err == nil {
		return nil
	}
	for _, c := range moveCodes {
		if errors.Is(err, c.err) {
			return &interlock.Error{Code: c.code, Message: strings.TrimPrefix(err.Error(), "placement: ")}
		}
	}
	f.p.log.Warn("the directory of shards cannot be changed", "error", err)
	return f.away()
}

// away is the answer while the engine of the journal does not answer.
func (f *fleet) away() error {
	return &interlock.Error{
		Code: interlock.CodeOutcomeUnknown,
		Message: fmt.Sprintf(
			"the journal's engine at %s does not answer: when it does, look at interlock admin shards, and repeat",
			f.p.cfg.where(),
		),
	}
}
