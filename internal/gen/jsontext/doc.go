// Package jsontext writes JSON documents that are committed: the members of an object stand in the
// order in which they were added, and what fits on a line stands on one line.
//
// Package jsontext must never sort: the order is the source's.
//
// Start reading at object.go.
package jsontext
