// Package journal is the command admin: its commands dump, verify and move the journal of a
// server that is stopped.
//
// They must never change the journal that they read, and never show an id that is the right to act
// on a lease.
//
// Start reading at journal.go, then verify.go.
package journal
