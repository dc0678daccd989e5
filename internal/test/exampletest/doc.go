// Package exampletest runs an example against a server of its own, and compares its output with
// the documented one.
//
// It must never be imported by anything but tests, and never let a different output
// pass: the output of an example is its documentation.
//
// Start reading at exampletest.go.
package exampletest
