// Package sim is the simulated world: agents and their clients, a network that delays,
// drops, duplicates, reorders and cuts, servers with clocks of their own that crash and
// freeze, and a disk that loses what was not synced. In it run the real engine, the real
// shard and the real journals. Everything happens in one goroutine, in the order of one
// queue of events, and all chance comes from one seed, so a seed is a run, bit for bit.
//
//	agent ─► client ═► network ═► host: shard.Manual ─► tap ─► journal ─► disk
//	           ▲          │                              │
//	           └──────────┘                              ▼
//	           answers, each with its index            audit: the checkers
//
// The audit follows the journal, not the engine: every entry that became durable is decoded and
// folded into a plain picture of holders and waiters, and each rule is checked on that picture
// by code that shares nothing with the engine. Answers are compared with it by the index that
// they carry. An operation with a lost answer stays open: the journal alone shows whether it
// happened.
//
// The simulation must never take a time, a random number or an order from anywhere but
// the seed, and never look into the engine to find out what is right.
//
// Start reading at world.go, then host.go and audit.go.
package sim
