// Package guard is the command guard: it installs, prints, checks and serves the guards in front of
// PostgreSQL, SQLite, Redis, HTTP services and Git repositories.
//
// The checks themselves stand in the packages below guard/ at the root. A guard must never let a
// write through because the server cannot be reached.
//
// Start reading at guard.go, then postgres.go.
package guard
