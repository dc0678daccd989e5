// Package layout holds the rules about this repository that a machine can check:
// which package may import which (table.go), what the engine may not do
// (purity.go) and say (english.go), which of its files know no state (stateless.go), and what every package, file
// and page must have (tree.go).
//
// The rules exist because one careless import is enough to lose the properties of the layout:
// an engine that reads a clock can no longer be replayed, and a client that imports the server
// links a database into every agent.
//
// Package layout must never change a file, and never excuse a place by its name:
// a rule that needs an exception gets a narrower rule.
//
// Start reading at table.go.
package layout
