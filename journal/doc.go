// Package journal defines what a journal is: the ordered, durable, fenced list of a shard's
// events, seen as opaque bytes. It holds the interface, its law and its errors, and no
// implementation. The implementations are the packages below it; journaltest is the suite that
// each of them passes.
//
// A journal never looks into an entry, never decides anything about leases, and
// never answers "done" before it is done. It imports the root package only.
//
// Start reading at [Journal]: its comment is the law.
package journal
