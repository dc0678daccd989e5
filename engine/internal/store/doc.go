// Package store has the state of one shard: the sum of the journal's events, and the indexes beside it.
// It searches the state for deadlocks and describes it, and emits no event.
//
//	State ─┬─ Namespace ─┬─ Node          a key: its holders, and the buckets of its wait queue
//	       │             ├─ Session       a process, its flows, and what they hold and wait for
//	       │             ├─ Request       from its arrival to the end of its lease
//	       │             ├─ Policy, Pool  key patterns; permits and tokens under them
//	       │             ├─ Queue, Task   work that waits for workers
//	       │             └─ Documents, logs, side effects, tombstones
//	       └─ PendingWork                 of a namespace: timers, candidates, suspects, searches
//
// State.Evolve folds one event into the state; see evolve.go. Nothing else changes journaled
// state, so a replay is a loop over Evolve. Package engine decides which events there are: it
// reads this state, and changes only the volatile parts, which are marked as such where they are
// declared.
//
// Fields are exported because package engine reads them, and no other package can import this
// one. What must hold of a field stands at the field.
//
// Package store must never decide whether a request is granted, emit an event, or know a command:
// it does not import package engine.
//
// Start reading at state.go and evolve.go, then request.go, node.go and waitqueue.go.
package store
