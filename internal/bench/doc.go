// Package bench puts load on a server and says what came of it: how many cycles
// of acquire and release a second, and how long each took.
//
// Every cycle is durable on the server's side, because every answer is. The
// agents run in this process and the server in another; what they share is the
// machine, so a figure is one of this machine with both on it.
//
// Package bench must never decide what a figure is good for: it measures, and
// never fails because something was slow.
//
// Start reading at cycle.go.
package bench
