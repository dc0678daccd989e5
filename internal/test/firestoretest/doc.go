// Package firestoretest tests the journal in Firestore over Google's own emulator, and what servers make of it, by the
// tests of remotetest. "make firestore" runs it.
//
// It must never be imported, and never let a test pass because there is no emulator.
//
// Start reading at emulator_test.go.
package firestoretest
