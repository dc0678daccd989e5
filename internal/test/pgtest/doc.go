// Package pgtest tests what servers make of a journal in PostgreSQL, with real servers of both, by the tests of
// remotetest. The journal itself is tested beside its code.
//
// It must never be imported.
//
// Start reading at suite_test.go.
package pgtest
