// Package trace holds one hour each of real requests to two production LLM services, and
// computes how long an agent behind such a request thinks. Demonstrations and load get a
// realistic shape from it.
//
// The rows are the data as published (data/README.md names source and licence); the think time
// is computed from them with rates that this package names; output with a figure that depends
// on it must name them too.
//
// Package trace must never scale time by itself: a program that replays an hour in a second
// must state so.
//
// Start reading at trace.go.
package trace
