// Command phases takes three agents through the phases of a piece of work: no agent begins a
// phase before all have ended the one before. In the end one of them leaves early, and the
// others are refused at once instead of waiting for ever.
//
// It needs a server:
//
//	interlock serve --data-dir /tmp/interlock --grpc 127.0.0.1:7421
//	go run ./examples/phases -grpc 127.0.0.1:7421
//
// Start reading at main.go.
package main
