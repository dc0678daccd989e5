// Package busy has the limits and the ports of tests, chosen so that load on the machine changes no result.
//
// A limit of an event that a test waits for is [Patience]. A limit that is itself the assertion needs a clock that
// load does not move: testing/synctest, or the shard's fake clock. The address of a server that is started again
// comes from [Ports].
//
// Package busy must never be imported by anything but tests, and never decide whether a test passes.
//
// Start reading at busy.go.
package busy
