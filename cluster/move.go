package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlockdev/interlock/placement"
)

// Moves of namespaces between shards. The directory orders their steps (see placement.Directory), and each is
// taken by the owner of the shard that it is about:
//
//	directory   source                target
//	leaving     closes the namespace
//	closed                            copies it, and opens nothing
//	arrived     forgets it            opens it
//
// A server learns from what its shard has, and from a directory that it reads after that, what to do: also one
// that took the shard over in the middle of a move. Each step may be repeated.

// MoveStep is what a shard does for a move.
type MoveStep uint8

// The steps of the source, and those of the target.
const (
	CloseNamespace  MoveStep = iota + 1 // it answers nothing any more
	ReopenNamespace                     // the move was taken back
	LeaveNamespace                      // the target answers
	CopyNamespace                       // the state of the closed namespace, from the source's journal
	OpenNamespace                       // the target answers
	DropNamespace                       // the move was taken back
)

func (s MoveStep) String() string {
	return [...]string{"", "close", "reopen", "leave", "copy", "open", "drop"}[s]
}

// Moving is a namespace that answers nothing in a shard, because it moves.
type Moving struct {
	Namespace string
	Move      uint64
	Other     int // the other shard
	State     MovingState
}

// MovingState is how far a shard is with a move.
type MovingState uint8

// The states of a source, and those of a target.
const (
	Closed  MovingState = iota + 1
	Copying             // a part was copied
	Copied              // it could open
)

// moveAction is what the owner of a shard does next about a move: a step of the shard, or a change of the directory.
type moveAction struct {
	Moving
	step   MoveStep
	change func(placement.Directory, uint64) (placement.Directory, error)
}

// planMoves returns what the owner of a shard does next, from what moves in the shard and a directory that was
// read after that. A move that was taken back is in no later directory, and its number is never used again.
func planMoves(d placement.Directory, shard int, here []Moving) (list []moveAction) {
	has := map[string]Moving{}
	for _, x := range here {
		has[x.Namespace] = x
	}
	known := map[uint64]bool{}
	for _, m := range d.Moves {
		known[m.Number] = true
	}
	// What an earlier move has left comes first: the next one may need it.
	for _, x := range here {
		if known[x.Move] {
			continue
		}
		mine := d.Shard(x.Namespace) == shard
		switch {
		case x.State == Closed && mine:
			list = append(list, moveAction{Moving: x, step: ReopenNamespace})
		case x.State == Closed:
			list = append(list, moveAction{Moving: x, step: LeaveNamespace})
		case x.State == Copied && mine:
			list = append(list, moveAction{Moving: x, step: OpenNamespace})
		case !mine:
			list = append(list, moveAction{Moving: x, step: DropNamespace})
		}
	}
	for _, m := range d.Moves {
		x, moves := has[m.Namespace]
		moves = moves && x.Move == m.Number
		if !moves {
			x = Moving{Namespace: m.Namespace, Move: m.Number}
		}
		switch shard {
		case m.From:
			x.Other = m.To
			switch {
			case m.Step == placement.StepLeaving && !moves:
				list = append(list, moveAction{Moving: x, step: CloseNamespace})
			case m.Step == placement.StepLeaving:
				list = append(list, moveAction{Moving: x, change: placement.Directory.Close})
			case m.Step == placement.StepArrived && moves:
				list = append(list, moveAction{Moving: x, step: LeaveNamespace})
			case m.Step == placement.StepArrived:
				list = append(list, moveAction{Moving: x, change: placement.Directory.Finish})
			}
		case m.To:
			x.Other = m.From
			switch {
			case m.Step == placement.StepClosed && x.State != Copied:
				list = append(list, moveAction{Moving: x, step: CopyNamespace})
			case m.Step == placement.StepClosed:
				list = append(list, moveAction{Moving: x, change: placement.Directory.Switch})
			case m.Step == placement.StepArrived && moves:
				list = append(list, moveAction{Moving: x, step: OpenNamespace})
			}
		}
	}
	return list
}

// follow needs mu. It has the moves tended of each shard that this server owns and that takes part in one.
func (n *Node) follow() {
	for s := range n.shards {
		l := &n.shards[s]
		if l.phase != owned || l.tending || !l.unsettled && !concerns(n.directory, s) {
			continue
		}
		l.tending = true
		go n.tend(s, l.owned)
	}
}

func concerns(d placement.Directory, shard int) bool {
	for _, m := range d.Moves {
		if m.From == shard || m.To == shard {
			return true
		}
	}
	return false
}

// moveTimeout bounds a step of a move: a copy replays the source's journal.
const moveTimeout = 5 * time.Minute

// tend takes the steps of a shard that are possible now.
func (n *Node) tend(s int, o Owned) {
	ctx, cancel := context.WithTimeout(n.life, moveTimeout)
	defer cancel()
	left, err := 1, error(nil)
	for progress := true; progress && err == nil; {
		left, progress, err = n.tendOnce(ctx, s, o)
	}
	n.mu.Lock()
	if l := &n.shards[s]; l.owned == o {
		l.tending, l.unsettled = false, left > 0 || err != nil
	}
	n.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		n.cfg.Logger.Warn("a step of a move failed, and is repeated", "shard", s, "error", err)
	}
}

// tendOnce reports how many namespaces of the shard move, and whether anything has changed.
func (n *Node) tendOnce(ctx context.Context, s int, o Owned) (left int, progress bool, err error) {
	here, err := o.Moving(ctx)
	if err != nil {
		return 0, false, err
	}
	d, version, err := n.readDirectory(ctx)
	if err != nil {
		return len(here), false, err
	}
	if concerns(d, s) && !n.needsThis(s) {
		n.ring() // the table has to show first that older servers cannot read what follows
		return 1, false, nil
	}
	for _, a := range planMoves(d, s, here) {
		if a.step != 0 {
			done, failed := o.Take(ctx, a.step, a.Moving)
			if failed != nil {
				err = errors.Join(err, fmt.Errorf("namespace %q, move %d: %w", a.Namespace, a.Move, failed))
			}
			progress = progress || done
			continue
		}
		next, failed := a.change(d, a.Move)
		if failed != nil || next.Version == d.Version {
			return len(here), false, errors.Join(err, failed)
		}
		_, failed = n.swapDirectory(ctx, next, version)
		return len(here), failed == nil, errors.Join(err, failed) // also if another server was faster
	}
	return len(here), progress, err
}

// needsThis reports whether the table keeps a shard from servers that cannot read all entries of this version.
func (n *Node) needsThis(s int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.table != nil && n.table.Seats[s].Needs >= n.cfg.Me.Reads
}

// readDirectory reads the directory, and lets the node follow it.
func (n *Node) readDirectory(ctx context.Context) (d placement.Directory, version string, err error) {
	v, err := load(ctx, n.cfg.Directory)
	if err != nil {
		return d, "", err
	}
	if d, err = placement.DecodeDirectory(v.Data); err != nil {
		return d, "", err
	}
	n.learn(d)
	return d, v.Version, nil
}

// Directory returns the directory as it is now.
func (n *Node) Directory(ctx context.Context) (placement.Directory, error) {
	d, _, err := n.readDirectory(ctx)
	return d, err
}

// swapDirectory stores a directory in the place of a version. done is false if another server was faster.
func (n *Node) swapDirectory(ctx context.Context, d placement.Directory, was string) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if _, done, err = n.cfg.Directory.Swap(ctx, d.Encode(), was); done && err == nil {
		n.learn(d)
	}
	return done, err
}

// learn takes in a directory that is newer than the one that the node knows.
func (n *Node) learn(d placement.Directory) {
	n.mu.Lock()
	newer := d.Version > n.directory.Version
	if newer {
		n.directory = d
	}
	n.mu.Unlock()
	if newer {
		n.ring()
	}
}

// change applies a change to the directory, however many servers change it.
func (n *Node) change(ctx context.Context, f func(placement.Directory) (placement.Directory, error)) error {
	for {
		d, version, err := n.readDirectory(ctx)
		if err != nil {
			return err
		}
		next, err := f(d)
		if err != nil || next.Version == d.Version {
			return err
		}
		if done, err := n.swapDirectory(ctx, next, version); done || err != nil {
			return err
		}
	}
}

// Move begins to move a namespace to a shard; the owners of both shards do the rest. If the move is under way
// already, Move returns it.
// A server of an older version reads the directory at its start only, so there must be none.
func (n *Node) Move(ctx context.Context, namespace string, to int) (m placement.Move, err error) {
	begun := false
	for _, m := range n.View().Members {
		if m.Reads < n.cfg.Me.Reads {
			return placement.Move{}, fmt.Errorf("server %s, version %s: %w: upgrade it first", m.HTTP, m.Version, ErrOlder)
		}
	}
	err = n.change(ctx, func(d placement.Directory) (next placement.Directory, err error) {
		next, m, err = d.Begin(namespace, to)
		begun = next.Version != d.Version
		return next, err
	})
	if begun && err == nil {
		n.cfg.Logger.Info("a namespace moves", "namespace", namespace, "from", m.From, "to", m.To, "move", m.Number)
	}
	return m, err
}

// TakeBack ends a move before its target answers: the namespace stays where it was.
func (n *Node) TakeBack(ctx context.Context, move uint64) error {
	return n.change(ctx, func(d placement.Directory) (placement.Directory, error) { return d.TakeBack(move) })
}

// ErrOlder: a server cannot follow a move.
var ErrOlder = errors.New("it knows no moves of namespaces")

// ErrUnknownMember: no server has that ID or that address.
var ErrUnknownMember = errors.New("there is no such server")

// AddShards adds shards in a store, by its name.
func (n *Node) AddShards(ctx context.Context, store string, shards int) error {
	return n.change(ctx, func(d placement.Directory) (placement.Directory, error) { return d.AddShards(store, shards) })
}

// Evacuate has a member, by its ID or its HTTP address, leave its shards to others, one after the other, and take none
// as long as there is another member, or ends that. It stays a member, and forwards calls.
func (n *Node) Evacuate(ctx context.Context, member string, on bool) error {
	for {
		v, err := load(ctx, n.cfg.Table)
		if err != nil {
			return err
		}
		n.mu.Lock()
		shards := len(n.shards) // Run adds to them
		n.mu.Unlock()
		t, err := decodeTable(v.Data, shards)
		if err != nil {
			return err
		}
		found, changed := false, false
		for i := range t.Members {
			if m := &t.Members[i]; m.ID == member || m.HTTP == member {
				found, changed = true, changed || m.Evacuate != on
				m.Evacuate = on
			}
		}
		switch {
		case !found:
			return fmt.Errorf("server %q: %w: see interlock admin members", member, ErrUnknownMember)
		case !changed:
			return nil
		}
		text, err := t.encode()
		if err != nil {
			return err
		}
		limit, cancel := context.WithTimeout(ctx, joinTimeout)
		_, done, err := n.cfg.Table.Swap(limit, text, v.Version)
		cancel()
		if done || err != nil {
			return err
		}
	}
}
