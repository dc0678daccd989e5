// Package shard runs one engine. One goroutine at a time owns it and steps it through
// the waiting commands; one append makes their events durable, and only then the
// answers leave.
//
//	Submit ─► mailbox ─► step ─► step ─► step ─┐ entries of the group
//	          (a backlog for each namespace)   ▼
//	               committer goroutine: journal.Append (one write for all)
//	                                           │ durable
//	                                           ▼
//	               effects, in order ─► Receiver.Deliver
//
// Namespaces are tenants, and none can slow another beyond a bound: they take turns at the owner
// (turn.go). From Submit to its step a command waits
//
//   - for the earlier commands of its own namespace,
//   - for the turn in progress, and for one turn of each other namespace with pending
//     work: a turn is 64 commands or 96 µs of the owner's time, whichever comes first, and is
//     overrun by at most 8 commands, one query (or one look of a survey) or one step of due
//     work,
//   - and, when the group is full, for the append in progress.
//
// From its step to its answer it waits for that append and for its own, of 1,024 commands and
// 256 KiB of entries at most. A large commit that ends the group adds to that: its entry may be
// several appends long (piece.go). The overrun of a turn shortens the same namespace's next
// turns. A tenant that submits faster than it is served gets CodeOverloaded while others still
// find room: its backlog may use the room that is left. And at most once for each
// Config.SnapshotBytes of entries, all tenants wait for the picture that becomes the snapshot
// (snapshot.go), for 2 ms at most.
//
// While the committer writes one group, the owner goroutine steps the next; it
// never runs further ahead than one group. When a command arrives at an idle shard, the
// goroutine that called Execute does all of this itself (drive.go).
// Refusals and reads wait for the same durability as grants, so no answer ever shows
// state above the durable index.
//
// If an append fails, the engine holds decisions that must never be announced: not to the
// callers of the group, not to those of the one stepped behind it, and not to a waiter that one
// of its steps would have granted. The next step depends on the journal's error, and there is
// no rollback in any case:
//
//	no space      nothing was written by it: the callers are refused, the engine is
//	              thrown away and rebuilt from the journal, and the shard continues,
//	              with releases first (rebuild.go)
//	fenced        another server owns the shard: finished, "not owner"
//	anything else the written part is unknown: finished, "outcome unknown"
//
// If a group takes several appends, the answers of each leave when it is durable: its
// commands have happened, also if the next append fails. A finished shard answers all
// open commands; its process opens the journal again or ends.
//
// The shard's clock is the only source of time: it starts at wall time, is monotonic
// from then on, never goes back over a restart, and skips gaps in which the process was
// paused. A command's time is its arrival, so a wait does not make a heartbeat late.
//
// Package shard must never decide anything about leases, and never let an
// effect out early.
//
// Start reading at shard.go, then owner.go. commit.go has group commit from top to bottom.
package shard
