// Package invisible knows which characters a reader cannot see. Agents write text that
// other agents and people read, and that names keys and files: whole sentences can be
// hidden in it.
//
// Every text that leaves the server, every key, every packet and every file name uses the
// one predicate of this package. There must never be a second one.
//
// Start reading at invisible.go.
package invisible
