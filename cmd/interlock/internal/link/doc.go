// Package link is what ties this process to the server as one session: a connection of the Go
// client, or heartbeats over HTTP; and the environment that a command in the session gets.
//
// It must never pass the credential on to a command.
//
// Start reading at link.go.
package link
