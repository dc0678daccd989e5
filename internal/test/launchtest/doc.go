// Package launchtest builds the interlock binary and starts servers for tests.
//
// It must never be imported by anything but tests.
//
// Start reading at launchtest.go.
package launchtest
