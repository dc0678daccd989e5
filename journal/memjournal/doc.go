// Package memjournal keeps a journal in memory, for tests and for the simulation.
// A [Store] outlives its owners as a disk outlives processes: it can be opened
// again and again, and each Open fences the owner before.
//
// It must stay so simple that its correctness is seen by reading, because other
// packages' tests take it for the truth. It must never be used where a restart
// may lose state.
//
// Start reading at [Store]; fault.go has the faults that a test can inject.
package memjournal
