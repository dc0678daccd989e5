// Package interlock has the types that every other package uses: the four counters, the modes,
// the parts of requests and answers, and the closed list of error codes. It only converts these
// values to text and back, and imports the standard library only.
//
// Start reading at [Claim] and [Mode] (requests), then [Lease], [Ticket] and [Holder]
// (answers), then [Code] and [Error] (refusals). docs/architecture.md defines the terms and the
// rules between them; package engine enforces them.
//
// Four counters are never mixed, and each is a type of its own: [Index] is a
// position in the journal, [Epoch] the number of a shard's ownership, [Fence]
// the number of a grant, [Version] the number of a state of guarded data.
package interlock
