// Package stream emits the codec of the session stream: for each message of the .proto files in
// package proto, a function that appends the message and one that decodes it, on the Go struct
// with the same content.
//
//	proto/session.proto  ─┐   numbers and types
//	interlock.Lease, ...  ┼─► plan ─► proto/session_gen.go
//	table.go             ─┘   the names that differ
//
// The .proto files are published, so they define the numbers and the types on the wire. The Go
// structs define the content. A field of a message goes to the struct field of the same name:
// max_hold to MaxHold. Package stream must never leave out a field in silence: a field of a
// message without a struct field, and a struct field that no message has, are errors, unless
// table.go names the place of the value.
//
// Start reading at table.go, the exceptions, then plan.go and print.go.
package stream
