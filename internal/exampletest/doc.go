// Package exampletest runs an example against a server of its own, and compares what
// it prints with what its reader is told that it prints.
//
// It must never be imported by anything but tests, and never let a different output
// pass: the output of an example is its documentation.
//
// Start reading at exampletest.go.
package exampletest
