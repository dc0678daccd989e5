// Package engine decides who may hold what. It is one state machine per shard:
// a command goes in, events and effects come out. It is pure and deterministic:
// no clock, no goroutine, no I/O, no randomness, no float and no map walked in
// an undefined order. Time and random ids come in as fields of commands, so
// every run can be repeated, simulated and explained.
//
// It has the shape of a decider:
//
//	             decide                    evolve
//	command ───────────────► events ───────────────────► state
//	   │                       │
//	   └──► effects            └──► one journal entry
//	        (answers, pushes)
//
// Step decides: it reads the state and emits events. evolve folds an event into
// the state, and nothing else changes what the journal promises. Replay calls
// evolve alone, so a newer version may decide differently without changing what
// has happened.
//
// Three things are not in the journal and are rebuilt by Recover: when each
// session was last heard of (renewals are too many to write), who listens for
// which answer, and at which key a waiter is watched (a cache, see wake.go).
//
// A request lives through these states, and keeps its number and its 128-bit id:
//
//	Acquire ─► waiting ─► offered ─► held ─► grace ─► ended
//	   │          │          │        ▲ │              ▲
//	   │          └──────────┼────────┘ └──────────────┤
//	   └─────────────────────┼─ granted at once        │
//	          left the line, or the offer lapsed ──────┘
//
// A held lease may be parked, with or without its keys, and be resumed: see
// park.go. One with a lock_delay is closed for a while before it is ended: see
// lockdelay.go.
//
// Package engine must never wait, never answer before its caller made the
// entry durable (that is package shard's work), and never trust the text that
// agents send.
//
// Start reading at engine.go, then acquire.go and wake.go; the scripts in
// testdata/ are the specification, and model_test.go is the same kernel written
// as naively as possible, to which this one is compared.
package engine
