// Package sim is the simulated world: agents and their clients, a network that delays,
// drops, duplicates, reorders and cuts, servers with clocks of their own that crash and
// freeze, and what their journals are stored in: a disk that loses what was not synced, or an engine
// of others that loses requests and answers. In it run the real engine, the real shards and the
// real journals. Everything happens in one goroutine, in the order of one queue of events, and all
// chance comes from one seed, so a seed is a run, bit for bit.
//
//	agent ─► client ═► network ═► host ─► owner: shard.Manual ─► tap ─► journal ─► disk, or
//	           ▲          │         ╚═► another host ...          │                 engine
//	           └──────────┘                                       ▼
//	           answers, each with its index                     audit: the checkers
//
// A journal in a directory has one shard, and one process has it. A journal in an engine has up to four shards
// (ledger), and any host may take over any of them at any time, beside an owner that lives: no placement could do
// worse (package placement has a simulation of its own). Each host knows owners from a table that is old, forwards
// once, and the owner may have lost the shard meanwhile. The engine, by the real code of package remote,
//
//	loses an append or its answer, for one attempt or for good
//	carries a request out late: after its repetition, after a take-over, after its sender has died
//	is taken over between two attempts of one append
//	cannot be reached, or has no room
//	goes back to an older state, as a replica that is promoted
//
// A call of a journal takes no time of the world. What happens in the middle of it happens in the pauses between its
// attempts (rental.go).
//
// There is one audit for each shard. It follows the journal, not the engine: every entry that became durable is
// decoded and folded into a plain picture of holders and waiters, and each rule is checked on that picture
// by code that shares nothing with the engine. Answers are compared with it by the index that
// they carry. An operation with a lost answer stays open: the journal alone shows whether it
// happened. When an engine has lost acknowledged entries, the picture goes back with it, and what was given out
// stays given out: nothing is answered before fences have jumped.
//
// The simulation must never take a time, a random number or an order from anywhere but
// the seed, and never look into the engine to find out what is right.
//
// Start reading at world.go, then host.go, owner.go and audit.go.
package sim
