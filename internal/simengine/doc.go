// Package simengine is an engine of others in memory, as package remote knows them: a database or a bucket that
// keeps the journals of some shards. It loses requests and answers, carries requests out late, has no room, and goes
// back to an older state, as its caller decides.
//
//	remote.Store ─► Driver ─► Fault? ─┬─ none      carried out, answered
//	                                  ├─ lost      neither
//	                                  ├─ answered  carried out; the answer is lost
//	                                  ├─ late      carried out by Land, at any time
//	                                  └─ full      refused
//
// There are two kinds, as there are of real engines: one that compares the owner and the tail, and one that can only
// create what is not there.
//
// The package must never take a time or a random number from anywhere, and never know what a journal is for.
package simengine
