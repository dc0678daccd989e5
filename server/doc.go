// Package server has the APIs: it decodes requests, authenticates clients, passes commands to the
// shard, and turns the decisions of the engine into answers. HTTP/JSON and the session stream are
// two APIs of one [Server] with the same answers.
//
//	HTTP/JSON ─┐                                      ┌─► problem documents, JSON
//	           ├─► host, credential, strict decoding ─┤
//	gRPC ──────┘          engine.Command ─► shard ─► engine.Effect ─► advice
//
// Wire types stop here: nothing below this package knows JSON or protocol buffers, and nothing here
// decides about holders.
//
// This package must never answer from state of its own, or show one tenant anything of another. It
// must never put the id of a lease, ticket, session or effect into a log, a metric, an event or
// another client's answer, or use a key or an agent's name as the label of a metric. It must never
// pass on text of agents without removing its control characters (text.go), or let a slow reader
// delay any other.
//
// Start reading at server.go, then route.go (the paths and their handlers), request_lease.go (the
// bodies), lease.go and line.go (the life of a lease, and of a wait for one, over HTTP), commit.go
// and effect.go (guarded state and effects), events.go and watch.go (the journal as a stream), and
// problem.go (refusals). openapi.json describes the HTTP API; a test compares it with the answers.
package server
