// Package trace holds one hour each of real requests to two production LLM
// services, and says how long an agent behind such a request thinks. It gives
// demonstrations and load a shape that nobody made up.
//
// The rows are the data as published (data/README.md names source and licence);
// the think time is computed from them with rates that this package names, and
// whoever prints a figure that depends on it names them too.
//
// Package trace must never scale time by itself: whoever replays an hour in a
// second says so.
//
// Start reading at trace.go.
package trace
