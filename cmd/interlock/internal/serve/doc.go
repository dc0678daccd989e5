// Package serve is the command serve: it puts the journal, the shard, the server and its listeners
// together, waits as a standby, and stops in order.
//
// It must never answer from a journal that another server may be writing.
//
// Start reading at serve.go, then process.go and leadership.go.
package serve
