// Command verify shows the second strategy, to verify instead of to lock: two agents work on
// one account at the same time without a lease. The slower one gets a description of the
// changes, in words for its model, and decides again; their payments never collide; and the
// reminder that both plan is sent once.
//
// It needs a server:
//
//	interlock serve --data-dir /tmp/interlock --grpc 127.0.0.1:7421
//	go run ./examples/verify -grpc 127.0.0.1:7421
//
// Start reading at main.go.
package main
