// Package server holds the APIs: it decodes what clients send, authenticates them, hands commands
// to the shard, and turns what the engine decided into answers. HTTP/JSON and the gRPC session
// stream are two APIs of one [Server] and give the same answers.
//
//	HTTP/JSON ─┐                                      ┌─► problem documents, JSON
//	           ├─► host, credential, strict decoding ─┤
//	gRPC ──────┘          engine.Command ─► shard ─► engine.Effect ─► advice
//
// Wire types stop here: nothing below this package knows JSON or protocol buffers, and nothing here
// decides about holders.
//
// What this package must never do: answer from state of its own, show one tenant anything of
// another, put the id of a lease, ticket, session or effect into a log, a metric, an event or
// another client's answer, use a key or an agent's name as the label of a metric, pass text of
// agents on without removing its control characters (text.go), or let a slow reader hold up any
// other.
//
// Start reading at server.go, then route.go (which path is what), request_lease.go
// (what can be asked for), lease.go and line.go (the life of a lease, and of a wait
// for one, over HTTP), commit.go and effect.go (guarded state and what is done once),
// events.go and watch.go (the journal as a stream), problem.go (how a refusal looks)
// and advice.go (what it tells the reader to do next). openapi.json describes the HTTP API; a test holds it
// equal to what is answered.
package server
