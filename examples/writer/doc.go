// Command writer is a single writer of your own, in forty lines: agents reserve units of a
// stock, and one writer decides. No other process can change the stock, so it is never
// oversold, whatever agents read, think or claim.
//
// The writer is a pure function, decide, and a handler that passes it the state and the message
// and returns state and reply. Both are written in one step, so a crash anywhere is harmless:
// the message is handed out again.
//
// It needs a server:
//
//	interlock serve --data-dir /tmp/interlock --grpc 127.0.0.1:7421
//	go run ./examples/writer -grpc 127.0.0.1:7421
//
// Start reading at writer.go; main.go plays the agents. Package writer/account does the
// same for money, with policy, holds and transfers.
package main
