// Package inspect is the commands that show holders, waiters and events: key, why and log.
//
// They must never change anything, and never show an id that is the right to act on a lease.
//
// Start reading at get.go, then why.go and waits.go.
package inspect
