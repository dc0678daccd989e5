// Package hooks is the command hooks: it puts the hooks of coding agents into their settings files,
// takes them out again, tests them with events of its own, and passes events on to servers with TLS.
//
// It must never confirm a hook in an agent's place, take an entry of others away, or write a
// credential into a settings file.
//
// Start reading at harness.go (the agents), then plan.go (what changes in a file).
package hooks
