// Package problem has what a problem document (RFC 9457) contains about a code: its status, its
// title, the action, and the next step. The server, the sentences of package prose and the generator
// read the same table.
//
// Package problem must never depend on a request: what differs from one refusal to the next is for
// package prose.
//
// Start reading at code.go.
package problem
