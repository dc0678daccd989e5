// Package proto is the wire of the session stream: the frames that a client and
// a server exchange, how they are written as bytes, and the [Link] that carries
// them.
//
//	client ── ClientFrame{ops} ──►  Link  ──► session layer
//	       ◄── ServerFrame{replies}       ◄──
//
// session.proto, with the two files that it imports, defines the bytes. The frames of this
// package are plain structs with the same content. internal/gen writes the functions that append
// and decode them (session_gen.go, model_gen.go, task_gen.go); the frames around the messages,
// the primitives and the sizes are written by hand (frame.go, wire.go, size.go).
//
// Tests compare the encoding with Google's codec, which reads the same files (google_test.go). The
// product does not use that codec: at a hundred thousand leases a second its many small messages
// would cost more than the engine's decisions.
//
// Large data (documents of up to 1 MiB) shares the stream with urgent operations; frame.go
// describes how frames are cut so that neither hurts the other.
//
// A Link is a [FramedLink] connection, a gRPC stream or, in the same process, [Pipe], which
// moves the structs without encoding them.
//
// This package must never interpret what it carries, and must never trust a
// length that came from outside.
//
// Start reading at session.proto, then frame.go, op.go and reply.go, then link.go and framed.go.
package proto
