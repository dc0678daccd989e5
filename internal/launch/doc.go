// Package launch runs "interlock serve" as a child process and knows when it is
// ready: the demonstration and the tests that kill servers need a real one.
//
// A server started here listens on free loopback ports, does not see the caller's INTERLOCK_
// variables, and does not outlive the caller where the system can arrange that (Linux). It also
// knows where PostgreSQL is, for tests that start one of their own.
//
// Package launch must never wait by sleeping, and never signal a process that it
// did not start.
//
// Start reading at launch.go; package launchtest builds the binary for tests.
package launch
