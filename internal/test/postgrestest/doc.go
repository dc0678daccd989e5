// Package postgrestest starts a PostgreSQL server for a test: Debian's, in a
// directory of its own, on a socket there and on no port.
//
// It must never be imported by anything but tests, never touch a server that it did
// not start, and never let a test pass because there is no PostgreSQL.
//
// Start reading at postgrestest.go.
package postgrestest
