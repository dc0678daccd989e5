// Package hook is the door for the hooks of coding agents: POST /v1/hooks/{harness}. It takes the JSON of a
// harness, such as Claude Code, leases the files that a tool is about to write, and answers in the
// harness's own words. What it does, and what it cannot prevent, is on docs/hooks.md.
//
//	event.go     an event without a harness's own words, and the verdict about it
//	harness.go   the harnesses, and what their bodies have in common; one file for each of them
//	key.go       the keys of paths
//	handler.go   the HTTP handler
//	door.go      the agents that came by; before.go and after.go act on their events
//	phase.go     the turns in which agents with regions of one file write it
//	commit.go    the agent's own files in a checkout that it shares, and what is in its index
//	disk.go      the callers that the door looks at the disk of its machine for
//	skip.go      edits that a person lets pass
//	memory.go    what an agent knows of files, and their last writers
//	speech.go    the sentences for agents
//
// What a shell command changes is read by package shell. The door calls the HTTP API under the agent's own
// credential, through package agent. It must never be imported by package server, never keep the contents of a file,
// and never block a harness because of its own failure: only strict mode refuses what could not be checked.
//
// Start reading at event.go, then handler.go.
package hook
