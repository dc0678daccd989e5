// Package apiclient is the client with which guards ask an Interlock server: a small client of its
// HTTP API with the few questions that a guard has.
//
// It must never take a missing answer for a yes: every method returns an error
// unless the server said so itself. The server's refusals are [*Refusal], with the
// problem document as it came, so that a guard can hand it on; where no answer came
// the error is [ErrUnreachable].
//
// [Foreign] keeps web pages away from guards that listen on loopback. It must never be the only
// thing that a guard relies on.
//
// Start reading at client.go.
package apiclient
