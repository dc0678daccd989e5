// Command lease shows the life of a lease over the network: two agents want the
// same account, the second waits in line, gets it with the first one's note, and a
// late write of the first is refused by its fence.
//
// It needs a server:
//
//	interlock serve --data-dir /tmp/interlock --grpc 127.0.0.1:7421
//	go run ./examples/lease -grpc 127.0.0.1:7421
//
// Start reading at main.go.
package main
