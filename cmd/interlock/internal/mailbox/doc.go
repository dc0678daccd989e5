// Package mailbox is the command mailbox: messages to the one writer of a key, and
// their log.
//
// It must never show a message of another agent with its control characters.
//
// Start reading at mailbox.go.
package mailbox
