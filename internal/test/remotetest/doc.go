// Package remotetest tests what servers make of a journal in an engine of others: two servers over one journal,
// fail-over, clients and commands that outlive it, histories, and moves from one journal to another. The tests are the
// same for every engine; a package with an engine calls them.
//
// It must never be imported by anything but tests, and never know which engine it is given.
//
// Start reading at engine.go.
package remotetest
