// Command interlock-hook passes an event of a coding agent to an Interlock server: it reads the
// event from standard input, posts it to /v1/hooks/HARNESS, and prints the answer. The agent waits
// for it at every edit, so it is small and starts in milliseconds: it has no net/http and no command
// line library. A server with TLS needs both; for one, it becomes `interlock hooks relay`.
//
// It must never block an agent by a failure of its own: then it prints nothing, exits with 0, and
// writes a line to standard error at most every ten minutes. With --mode strict it refuses instead.
//
// Start reading at main.go, then call.go.
package main
