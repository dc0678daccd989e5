// Package tools decides, in one place, whether a test may use programs other than Go.
//
// Plain "go test ./..." is green on a machine that has only Go: a test that needs a
// database, strace or another program is skipped there. The targets of the Makefile set
// the environment variable [Variable], and then a missing program is a failure, so that
// no suite passes because it found nothing to run.
//
// Package tools must never be imported by anything but tests, and never skip a test when
// [Variable] is set. A rule in internal/layout refuses every other way to skip a test.
//
// Start reading at tools.go.
package tools
