// Package incident finds what went wrong in the journal's events: deadlocks, lost leases, stale writers, stuck waits,
// fail-overs and dead letters. Each incident has a sentence, the next step, and the index of the entry before it, so
// that the state of that moment can be shown again (GET /v1/at, `interlock at --index N key waits`).
//
//	events in the order of the journal ──► Reducer ──► []Incident, Left
//
// Invariants:
//   - The result depends on the events and the Options alone: no clock, no I/O, no randomness, no order of a map.
//   - An incident that repeats (the same kind, cause, agents and keys, no more than Options.Fold after the last one) is
//     one incident with a count.
//   - Memory is bounded: MaxOfKind incidents of each kind, MaxOpen waits that go on, MaxNames agents and keys of one
//     incident. What does not fit is counted. One event costs a constant number of look-ups.
//   - Incidents have no id of a lease, session or ticket, which are secrets. A task's id is none.
//
// Refused writes are in the journal only for keys with a pattern that records refusals: see Pattern.AuditRefusals.
// Whether a holder was alive is not in the journal either, since heartbeats are not: a lease that ended by its ttl is
// a lost lease, whatever became of its holder.
//
// Start reading at incident.go; reducer.go folds the events.
package incident
