// Package webhook is the command webhook: the endpoints that receive messages about events.
//
// A secret must never be written anywhere but to standard output, once, when it was made.
//
// Start reading at webhook.go.
package webhook
