// Package protomessage has the messages of the session stream as a foreign client has them: it compiles the
// .proto files of package proto when a test runs, and encodes with Google's codec.
//
// It must never use the codec of package proto, which tests compare with it.
//
// Start reading at message.go.
package protomessage
