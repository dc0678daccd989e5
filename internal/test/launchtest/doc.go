// Package launchtest builds the interlock binary and starts servers for tests.
//
// All test processes of a tree share one build, in bin/test. Each runs a copy, which Main removes.
//
// It must never be imported by anything but tests.
//
// Start reading at launchtest.go.
package launchtest
