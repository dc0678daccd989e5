// Package filejournal keeps a journal in a directory of the local disk: the
// default backend, with nothing to install. docs/journal.md has the format, what
// is assumed of the machine, and how each point of the law is met; the constants
// in format.go repeat the drawings.
//
// It must never acknowledge what a crash could take back, never repair what it
// cannot prove to be the torn write of a crash, never retry a failed sync, and
// never change a byte of a directory that it refuses to open.
//
// Start reading at [Open] in open.go, then append.go (the hot path), log.go (how a
// log is read and torn told from damaged), pool.go (space) and snapshot.go. All
// system calls go through the two interfaces in directory.go, which the crash
// tests replace by a disk that forgets.
package filejournal
