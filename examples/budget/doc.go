// Command budget shares a model's API among agents: at most two calls at a time, and a thousand
// units of a token budget a day. A call takes its place and its units in one step, or neither,
// so no agent sits on half of a call's needs. Places come back when a call ends, or when its
// agent dies; units come back with time.
//
// It needs a server:
//
//	interlock serve --data-dir /tmp/interlock --grpc 127.0.0.1:7421
//	go run ./examples/budget -grpc 127.0.0.1:7421
//
// Start reading at main.go.
package main
