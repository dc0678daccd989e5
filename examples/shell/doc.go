// Package shell holds examples for users with a shell and no library: a lease's life with curl
// (lease.sh), shells that take turns by "interlock run" and check the fence where they write
// (counter.sh), two runs at a time (permits.sh), a race for the next of many items (items.sh),
// a human's approval (approval.sh), workers that go through phases together (phases.sh), and a
// file that several agents change (files.sh). The test runs them against a real server, so
// their output is what a reader sees.
//
// The package must never have Go code but its test. Start reading at lease.sh.
package shell
