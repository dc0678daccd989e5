// Package journal is the command admin: its commands back up a running server, and dump, verify
// and move the journal of one that is stopped.
//
// They must never change the journal that they read, never show an id that is the right to act on a
// lease, and never leave a backup under its name that is not whole.
//
// Start reading at journal.go, then verify.go and backup.go.
package journal
