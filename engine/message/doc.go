// Package message has the engine's messages to callers as codes and values: the reason of a refusal,
// the end of a lease, a warning about a request. A Text is an ID with its values; package prose
// makes a sentence of it where it is shown.
//
// Package message must never contain a sentence, and its IDs must never change their numbers, since
// journals contain them.
//
// Start reading at text.go; id.go has the list.
package message
