// Package checkouttest is a model of a checkout that agents of six harnesses share. It has no code but tests.
//
//	seed ─► world ─► an agent edits a file, or is about to run a command
//	                   │ the JSON of its harness         ▲ refused, or let through
//	                   ▼                                 │
//	                 hooks ─► a server in a process of its own, killed and restarted
//	                 bash, in a folder of its own ─► which files, commits and HEAD changed?
//
// Commands are the rows of hook/shell/testdata, and random ones of writers, readers and git in all forms of a shell.
// Each is run for real, whether it was refused or not, and a refused one is undone. So the model knows of each command
// what it does to the files that other sessions hold: what changes, commits, stages or moves something of theirs has to
// have been refused, or to be of the remainder that docs/hooks.md documents. The share of that is printed, and bounded
// by a ratchet. What only reads must never have been refused.
//
// Commands are confined: their words lead nowhere but into the folder, PATH has a few harmless programs, and where
// bubblewrap works, all else is read-only and there is no network. The package must never run a command that
// confine_test.go has not checked, and never ask the code under test what a command does.
//
// Start reading at world_test.go, then command_test.go.
package checkouttest
