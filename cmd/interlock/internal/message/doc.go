// Package message is the commands message and writer: messages to the one writer of a key, their
// log, and which queue is the writer.
//
// It must never show a message of another agent with its control characters.
//
// Start reading at message.go.
package message
