// Package workspace is the command workspace: places to work for agents on this host, and their way to
// the merge boundary.
//
// Package workspace of the module makes and deletes them. This one holds the lease workspace:REPO/NAME
// while it does, and while a command runs inside, and keeps the document of that key. Within "workspace
// run" the commands use the lease of that run.
//
// It must never change a workspace without the lease, and never pass the credential on to a command.
//
// Start reading at workspace.go.
package workspace
