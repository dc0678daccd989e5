// Package agent acts at the HTTP API for agents that speak another protocol, such as MCP or the hooks
// of a coding agent. It opens their sessions, carries their calls, follows their tickets, and keeps
// what was granted while an agent did other work.
//
//	hub.go     the callers of one door
//	origin.go  what the API sees of an agent's own request, and the transport within one process
//	caller.go  one agent: its session and its calls
//	lease.go   requests for leases, and their answers
//	queue.go   tickets of requests that wait, found again after a restart
//	follow.go  turns that come while the agent is not there
//
// It must never decide what the API decides: every call is an ordinary call of the HTTP API under the
// agent's own credential, so that rights, quotas and sentences are those of the API. It keeps nothing
// that a restart may not lose: sessions and tickets are found again by their Idempotency-Key.
//
// Start reading at hub.go.
package agent
