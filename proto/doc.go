// Package proto is the wire of the session stream: the frames that a client and
// a server exchange, how they are written as bytes, and the [Link] that carries
// them.
//
//	client ── ClientFrame{ops} ──►  Link  ──► session layer
//	       ◄── ServerFrame{replies}       ◄──
//
// session.proto, with the two that it imports, is the truth about the bytes, and
// sessionpb is the code that protoc makes of them (proto/generate.sh). Only tests import it,
// as the oracle of this package's encoding.
// The frames of this package are plain structs with the same content and a
// hand-written encoding: at a hundred thousand leases a second the generated
// code's many small messages cost more than the engine's decisions. A test
// holds both encodings equal, field by field.
//
// What can be large (documents of up to 1 MiB) shares the stream with what is urgent; frame.go
// describes how frames are cut so that neither hurts the other.
//
// A Link is a [FramedLink] connection, a gRPC stream or, in the same process, [Pipe], which
// moves the structs without encoding them.
//
// This package must never interpret what it carries, and must never trust a
// length that came from outside.
//
// Start reading at session.proto, then frame.go, link.go and framed.go; state.go, packet.go and
// effect.go have what is about documents and effects, task_op.go, task.go and queue.go what
// is about tasks.
package proto
