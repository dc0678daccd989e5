// Package valkeytest tests what servers make of a journal in Valkey and in Redis, by the tests of remotetest and some
// of its own: a primary killed behind its replica, and a replica that lacks the newest entries. "make redis" runs it.
//
// It must never be imported, and never let a test pass because there is no server.
//
// Start reading at suite_test.go.
package valkeytest
