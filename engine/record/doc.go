// Package record describes the contents of the journal: the events of an entry, the meaning of
// their kinds, and how they are written as bytes.
//
// It knows nothing of the engine's state. An Event is a value that can be written, read and
// compared by itself: the engine makes events and folds them, package shard replays them, and
// package server shows them. The contents of an event's Blob, such as a pattern, a queue, a
// task or a question, have their own types and codecs here, too. A Fingerprint distinguishes
// the bodies of commands; it is journaled, so its hash belongs to the format.
//
// The law of the format: numbers of kinds, reasons, outcomes, fields and bits are never changed
// and never reused; what is new gets a new number at the end; a field that is zero is left out.
// Journals of every version are read for ever, and an entry of a newer version is refused with
// ErrNewer. The package is as pure as the engine: no clock, no I/O, no randomness.
//
// Start reading at kind.go and event.go, then codec.go.
package record
