// Package guard has no code of its own. The packages below it are the guards: checks
// of a fence at the resource that an agent writes, because no lock service can stop a
// holder that was paused and wakes up late.
//
//	agent ── lease, fence ──► guard ──► the protected resource
//	                            │
//	                            └─ refuses a fence that is below the highest it has seen
//
// All of them follow one rule, for keys that are claimed exclusively: a write is
// accepted only if its fence is not below the highest that was seen for its key.
//
// No package below guard may trust a clock, or decide anything else: only the server decides
// about leases.
//
// Start reading at docs/guards.md, then guard/postgres.
package guard
