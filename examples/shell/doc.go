// Package shell holds examples for those who have a shell and no library: a
// lease's life with curl. The test runs them against a real server, so
// what they print is what a reader sees.
//
// The package has no Go code but the test. Start reading at lease.sh.
package shell
