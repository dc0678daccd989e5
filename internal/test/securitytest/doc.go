// Package securitytest attacks a real server, as a process with credentials of two
// tenants and TLS: over HTTP, over the session stream, at the Redis port and by the command. Each
// attack is a case with a number, and docs/security.md lists them all.
//
// It must never count a case that was not carried out, weaken a case so that a new
// operation passes (an operation of openapi.json that no case knows fails), or hold a
// test that needs no attacker: those stand beside what they test.
//
// Start reading at catalogue_test.go, then site_test.go (the attacked server) and
// operation_test.go (the properties of each operation).
package securitytest
