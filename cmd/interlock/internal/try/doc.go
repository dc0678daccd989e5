// Package try is the commands demo and bench, with which a newcomer tries Interlock.
//
// They must never touch a server that the command line did not name: without one, they start their
// own.
//
// Start reading at demo.go.
package try
