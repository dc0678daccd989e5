// Package shard runs one engine: a single goroutine owns it, steps it through
// the commands that wait, makes their events durable in one append, and only
// then lets the answers go.
//
//	Submit ─► mailbox ─► step ─► step ─► step ─┐ entries of the group
//	                                           ▼
//	               committer goroutine: journal.Append (one write for all)
//	                                           │ durable
//	                                           ▼
//	               effects, in order ─► Receiver.Deliver
//
// While the committer writes one group, the owner goroutine steps the next; it
// never runs further ahead than one group. Refusals and reads wait for the same
// durability as grants, so no answer ever shows state above the durable index.
//
// If an append fails, the engine holds decisions that nobody may ever hear of.
// The shard is then finished: it answers what it had not answered with "outcome
// unknown" (or "not owner"), and its process opens the journal anew or ends.
// There is no rollback.
//
// This is the place where time enters: the shard's clock is wall time when the
// shard is opened and monotonic from then on, never goes back over a restart,
// and leaves out gaps in which the process was paused.
//
// Package shard must never decide anything about leases, and never let an
// effect out early.
//
// Start reading at shard.go.
package shard
