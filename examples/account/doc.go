// Command account moves money between two accounts that only their writer can change:
// late fees, a hold that is captured in part, a transfer, and what is refused.
//
// It needs a server:
//
//	interlock serve --data-dir /tmp/interlock --grpc 127.0.0.1:7421
//	go run ./examples/account -grpc 127.0.0.1:7421
//
// Start reading at main.go; docs/account.md is the guide.
package main
