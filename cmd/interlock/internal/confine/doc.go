// Package confine has the flags that put a command into a sandbox, for the commands that run others.
//
// It must never leave out a limit that was asked: what cannot be enforced is refused.
//
// Start reading at confine.go.
package confine
