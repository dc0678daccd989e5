// Package history records the requests and answers of a real server's clients while processes
// are killed and stopped, disks fail and connections break; and decides whether a correct
// server can have answered so.
//
//	clients ──Begin, End──► Recorder ──► []Op ──► Check ─┬─ order      real time against index and epoch
//	                                                     ├─ leases     by fence and index
//	                                                     ├─ documents  by version and index
//	                                                     ├─ tasks      effects, once each
//	                                                     └─ porcupine  per key, without the index
//
// Every answer carries the index of the journal at which it is true. So the answers are sorted
// by it and fed to a model of a few maps, which shares nothing with the engine. A request
// without an answer stays open: it may have happened once, at any moment after it was sent, or
// never. Fences and versions number the grants and the commits in the journal's own order; they
// place also those that have left traces only in other clients' answers.
//
// Nothing is held against time but this: no lease may end sooner than its ttl after the
// last sign of life that was acknowledged.
//
// Package history must never accept "probably", and never ask the server what is right.
// Package traffic is the clients.
//
// Start reading at op.go, then check.go.
package history
