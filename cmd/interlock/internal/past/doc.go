// Package past is the command at, which runs reading commands on an earlier state, and compares two states.
//
// It must never change a journal, or pass on a request that changes anything.
//
// Start reading at at.go.
package past
