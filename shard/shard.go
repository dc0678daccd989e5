package shard

import (
	"context"
	"errors"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// Shard runs one engine over one journal. Its methods may be called by any
// number of goroutines.
type Shard struct{}

var errUnbuilt = errors.New("shard: under construction")

// Open replays the journal, begins this owner's term, and serves.
func Open(ctx context.Context, cfg Config) (*Shard, error) { return nil, errUnbuilt }

// Submit hands commands over, in this order. It sets Head.At itself; Head.From
// must be a Receiver or nil and gets the answers. The shard keeps the commands
// (not the slice): the caller must not touch them again. Either all of them are
// taken, or none and the error is an *interlock.Error with CodeShuttingDown,
// CodeOverloaded or CodeNotOwner.
func (s *Shard) Submit(cmds ...engine.Command) error { return errUnbuilt }

// Do carries out one command and returns its first answer, also when that is a
// refusal. It sets Head.From. The error is that of Submit, or ctx's: the command
// may then still be carried out. It panics for a command without an answer
// (Detach, Tick, Limit, Recover).
func (s *Shard) Do(ctx context.Context, cmd engine.Command) (engine.Effect, interlock.At, error) {
	return engine.Effect{}, interlock.At{}, errUnbuilt
}

// Read runs query in the goroutine that owns the engine, and returns when all
// that it can have seen is durable. query must be quick, must not keep the
// engine and must not call the shard. When Read returns an error query may have
// run or not, but it does not run any more, and what it saw must not be shown.
func (s *Shard) Read(ctx context.Context, query func(*engine.Engine, engine.Time)) (interlock.At, error) {
	return interlock.At{}, errUnbuilt
}

// Follow calls visit for each entry of the journal from index from on (0: from
// the oldest kept), in order and each once, and then for new ones as they become
// durable, until ctx ends, visit fails or the shard is closed. It reads from the
// journal at the visitor's pace and holds nothing back for it, so a slow visitor
// costs nobody anything. The entry is valid during the call only. Records that
// open an epoch hold no events and are left out. An index that is no longer kept
// gives CodeHistoryTrimmed.
func (s *Shard) Follow(ctx context.Context, from interlock.Index,
	visit func(index interlock.Index, epoch interlock.Epoch, entry []byte) error,
) error {
	return errUnbuilt
}

// At is the newest durable state.
func (s *Shard) At() interlock.At { return interlock.At{} }

// First is the oldest index that Follow can begin at.
func (s *Shard) First() interlock.Index { return 0 }

// OnReset registers what to call when the engine had to be rebuilt within this
// term (after the journal had no space). Leases, sessions, tickets and request
// ids are as durable as ever, but the engine has forgotten who listens: nobody
// who waits attached gets a second answer, and no session gets pushes, until
// they Poll or Attach again. So a door ends its streams with CodeOutcomeUnknown
// (their clients come back, attach and repeat) and polls for its waiting calls.
// f must not block and must not call the shard synchronously.
func (s *Shard) OnReset(f func()) {}

// Drain stops granting: new sessions, leases and waits are refused with
// CodeShuttingDown, and nobody is taken from the line any more. What gives
// something back still works. It returns when that is in force.
func (s *Shard) Drain(ctx context.Context) error { return errUnbuilt }

// Close carries out what was submitted, answers it, stops everything, makes a
// last snapshot and closes the journal. When ctx ends first, what is not
// answered by then is answered with "outcome unknown".
func (s *Shard) Close(ctx context.Context) error { return errUnbuilt }

// Failed is closed when the shard is finished because its journal failed or
// another server has taken it over. Err then says which.
func (s *Shard) Failed() <-chan struct{} { return nil }

// Err is nil until Failed is closed. It wraps the journal's error.
func (s *Shard) Err() error { return nil }
