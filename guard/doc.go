// Package guard has no code of its own. The packages below it are the guards: what
// checks a fence at the place where an agent writes, because no lock service can
// stop a holder that was paused and wakes up late.
//
//	agent ── lease, fence ──► guard ──► what the lease protects
//	                            │
//	                            └─ refuses a fence that is below the highest it has seen
//
// They all follow one rule, for keys that are claimed exclusively: a write is
// accepted only if its fence is not below the highest that was seen for its key.
//
// Nothing below guard may believe a clock, or decide anything but that: only the server decides
// about leases.
//
// Start reading at docs/guards.md, then guard/postgres.
package guard
