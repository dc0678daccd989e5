// Package backup reads and writes backup files: the state of a shard at one index, in a form that
// any backend can be filled from. A backup is the newest snapshot of a journal and the entries that
// follow it, so a server makes one without a stop of its engine.
//
// Every chunk has a checksum of its own, and the last one a hash of all others. So a file that was
// cut off, or has one flipped bit, is refused before anything is restored from it.
//
// Package backup must never hold more than a chunk or an entry in memory, and never return data of
// a chunk with a wrong checksum.
//
// Start reading at format.go.
package backup
