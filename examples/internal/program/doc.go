// Package program is the start-up that the example programs share: the address of the server, a
// context that ends with Ctrl-C, and the exit code.
//
// It must never do anything with Interlock itself: each example shows all of that in its own
// file.
//
// Start reading at program.go.
package program
