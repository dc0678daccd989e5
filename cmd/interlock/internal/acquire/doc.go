// Package acquire has the common parts of requests for a lease: their flags, the line that shows
// a wait, the ticket, the flow around the command, and the report of a grant.
//
// It must never leave a place in line or a lease behind that nothing will use: Undo and LeaveLine
// end them.
//
// Start reading at flags.go, then line.go.
package acquire
