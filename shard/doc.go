// Package shard runs one engine: one goroutine at a time owns it and steps it through
// the commands that wait, their events are made durable in one append, and only
// then the answers go.
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
//   - for the commands of its own namespace that came before it,
//   - for the turn that is under way, and for one turn of each other namespace with pending
//     work: a turn is 64 commands or 96 µs of the owner's time, whichever comes first, and is
//     overrun by at most 8 commands, one query (or one look of a survey) or one step of due
//     work,
//   - and, when the group is full, for the append that is under way.
//
// From its step to its answer it waits for that append and for its own, of 1,024 commands and
// 256 KiB of entries at most, or what the large commit that ended the group adds to that: its
// entry may be several appends long (piece.go). The overrun of a turn is taken from the same
// namespace's next turns. A tenant that submits faster than it is served gets CodeOverloaded
// while others still find room: it may have as much waiting as room is left. And at most once
// for each Config.SnapshotBytes of entries all tenants wait for the picture that becomes the
// snapshot (snapshot.go), for 2 ms at most.
//
// While the committer writes one group, the owner goroutine steps the next; it
// never runs further ahead than one group. When a command comes to a shard that stands
// still, the goroutine that brought it by Execute does all of this itself (drive.go).
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
// Of a group that takes several appends, the answers of each leave when it is
// durable: what was written has happened, also when the next append fails. A finished
// shard answers what it had not answered; its process opens the journal anew or ends.
//
// This is the place where time enters: the shard's clock is wall time when the
// shard is opened and monotonic from then on, never goes back over a restart,
// and leaves out gaps in which the process was paused. A command's time is that
// of its arrival, so a heartbeat that had to wait counts as if it had not.
//
// Package shard must never decide anything about leases, and never let an
// effect out early.
//
// Start reading at shard.go, then owner.go. commit.go tells group commit from top to bottom.
package shard
