// Package advice learns from the journal's events what would make waits shorter, each with evidence and with the
// command that changes it:
//
//	lock_order       keys that several parties take in different orders, and one order that removes the deadlocks
//	coarse_key       a key with waiters that write at other children of it than the holder before them
//	short_ttl        leases that end by their ttl, where the usual hold is longer than the ttl
//	unused_capacity  a pattern with more permits than are ever held at once
//	hot_key          a key that costs much of the time lost in its namespace
//
// Invariants:
//   - The result depends on the events alone: no clock, no I/O, no randomness, no order of a map.
//   - Nothing is advised without as many observations as the constants of advice.go ask for.
//   - Memory is bounded by MaxOpen, MaxKeys, MaxEdges, MaxClasses and MaxPatterns; what does not fit is not learned
//     from, and counted in Result.Left. One event costs a constant number of look-ups for each of its claims, and at
//     most MaxHeld for each key that its party holds. A result costs a sort of all keys and pairs.
//   - Advice has no id of a lease, session or ticket.
//
// Keys of one request are granted together, so they have no order. An order counts only between exclusive claims of one
// flow; shared claims and permits are left out.
//
// Start reading at advice.go; reducer.go folds the events, order.go and findings.go make the advice.
package advice
